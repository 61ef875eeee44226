// One column of a data set: a name, what a row of it is, and how rows are read.
#pragma once

#include "runtime/io/File.h"
#include "runtime/io/MappedFile.h"
#include "runtime/plan/DType.h"

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace sluice::runtime {

/// What says which tokens there may be.
struct Vocabulary {
  int64_t size = 0;      ///< 0: nothing does
  std::string file = {}; ///< empty: they are the bytes of a text
};

/// What a header says of a column.
struct ColumnHeader {
  std::string name, file; ///< of the column, and of the file that messages name
  DType dtype = DType::f32;
  Shape shape; ///< of one row
  int64_t rows = 0;
  Vocabulary vocabulary = {}; ///< of tokens

  /// Of the column `name`, whose elements have this shape, rows first; fails if it has no rows dimension.
  static ColumnHeader of(const std::string &name, const std::string &file, DType dtype, const Shape &whole);

  int64_t rowBytes() const { return elementsOf(shape) * static_cast<int64_t>(sizeOf(dtype)); }
};

/// A column whose header has been read and is sound: as many bytes are there as it says, or can be unpacked.
class Column {
public:
  explicit Column(ColumnHeader header) : header_(std::move(header)) {}
  Column(const Column &) = delete;
  Column &operator=(const Column &) = delete;
  virtual ~Column() = default;

  const ColumnHeader &header() const { return header_; }

  /// Unpacks what cannot be read where it is. Comes once, before `read`.
  virtual void load() {}

  /// Rows that are read from now on are of this epoch of a run with this seed, where that makes a difference.
  virtual void beginEpoch(uint64_t seed, uint64_t epoch) { (void)seed, (void)epoch; }
  /// Whether rows take so long that several are read at once.
  virtual bool isCostly() const { return false; }

  /// Copies a row, `rowBytes()` of the header. Fails if it is damaged or not there any more. Any thread may call this.
  void read(int64_t row, std::span<std::byte> to) const;

  /// "train.npz: column 'label', row 17", for messages.
  std::string where(int64_t row) const;

protected:
  virtual void copy(int64_t row, std::span<std::byte> to) const = 0;
  /// The file that a row lies in, and the row's number there.
  virtual std::pair<std::string, int64_t> place(int64_t row) const { return {header_.file, row}; }

private:
  ColumnHeader header_;
};

/// Rows that lie in a file at even distances.
struct MappedRows {
  std::shared_ptr<const MappedFile> file;
  int64_t begin = 0, stride = 0, rows = 0; ///< in bytes, but for the rows
};

/// A column that is read where it lies, in one file or in several, one after another.
class MappedColumn final : public Column {
public:
  MappedColumn(ColumnHeader header, std::vector<MappedRows> parts)
      : Column(std::move(header)), parts_(std::move(parts)) {}

private:
  void copy(int64_t row, std::span<std::byte> to) const override;
  std::pair<std::string, int64_t> place(int64_t row) const override;
  /// The part that has the row, whose number becomes that in the part.
  const MappedRows &partWith(int64_t &row) const;

  std::vector<MappedRows> parts_;
};

/// A column that is unpacked into memory.
class UnpackedColumn final : public Column {
public:
  /// `unpack` gives all rows, one after another.
  UnpackedColumn(ColumnHeader header, std::function<Bytes()> unpack)
      : Column(std::move(header)), unpack_(std::move(unpack)) {}
  void load() override { data_ = unpack_(); }

private:
  void copy(int64_t row, std::span<std::byte> to) const override;

  std::function<Bytes()> unpack_;
  Bytes data_;
};

/// A column of elements that lie at `begin` of a file, row after row.
std::unique_ptr<Column> mappedColumn(const std::shared_ptr<const MappedFile> &file, ColumnHeader header, int64_t begin);

/// `bytes` bytes from a source that may have fewer: memory grows with what is there, not with what was promised.
/// `read` fills a buffer and returns how much it had; `failShort` is told how much there was in all.
Bytes readGrowing(int64_t bytes, const std::function<int64_t(std::byte *, int64_t)> &read,
                  const std::function<void(int64_t)> &failShort);

} // namespace sluice::runtime
