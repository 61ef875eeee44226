// One column of a data set: its name, row type, and row reader.
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

/// The vocabulary of a column of tokens.
struct Vocabulary {
  int64_t size = 0;      ///< number of tokens; 0: unknown
  std::string file = {}; ///< file of the vocabulary; empty: tokens are the bytes of a text
};

/// Metadata of a column.
struct ColumnHeader {
  std::string name, file; ///< `file` is the name in messages
  DType dtype = DType::f32;
  Shape shape; ///< shape of one row
  int64_t rows = 0;
  Vocabulary vocabulary = {}; ///< vocabulary, if rows are tokens

  /// Header of the column `name` whose elements have this shape, rows first. Fails if the shape has no rows dimension.
  static ColumnHeader of(const std::string &name, const std::string &file, DType dtype, const Shape &whole);

  int64_t rowBytes() const { return elementsOf(shape) * static_cast<int64_t>(sizeOf(dtype)); }
};

/// A column with a validated header: the file contains, or unpacks to, as many bytes as the header requires.
class Column {
public:
  explicit Column(ColumnHeader header) : header_(std::move(header)) {}
  Column(const Column &) = delete;
  Column &operator=(const Column &) = delete;
  virtual ~Column() = default;

  const ColumnHeader &header() const { return header_; }

  /// Unpacks a column that cannot be mapped. Called once, before `read`.
  virtual void load() {}

  /// Sets the seed and the epoch of the augmentation of rows that are read from here on.
  virtual void beginEpoch(uint64_t seed, uint64_t epoch) { (void)seed, (void)epoch; }
  /// Whether reading a row is slow enough to read several rows concurrently.
  virtual bool isCostly() const { return false; }

  /// Copies one row of `rowBytes()` bytes. Fails if the row is damaged or missing. Thread-safe.
  void read(int64_t row, std::span<std::byte> to) const;

  /// "train.npz: column 'label', row 17", for messages.
  std::string where(int64_t row) const;

protected:
  /// `read` without the check of booleans.
  virtual void copy(int64_t row, std::span<std::byte> to) const = 0;
  /// The file that contains a row, and the row's number in the file.
  virtual std::pair<std::string, int64_t> place(int64_t row) const { return {header_.file, row}; }

private:
  ColumnHeader header_;
};

/// Equally spaced rows in a file.
struct MappedRows {
  std::shared_ptr<const MappedFile> file;
  int64_t begin = 0, stride = 0, rows = 0; ///< in bytes, except for rows
};

/// A memory-mapped column of one file or of several files in sequence.
class MappedColumn final : public Column {
public:
  MappedColumn(ColumnHeader header, std::vector<MappedRows> parts)
      : Column(std::move(header)), parts_(std::move(parts)) {}

private:
  void copy(int64_t row, std::span<std::byte> to) const override;
  std::pair<std::string, int64_t> place(int64_t row) const override;
  /// The part that contains the row; converts the row number to a number within the part.
  const MappedRows &partWith(int64_t &row) const;

  std::vector<MappedRows> parts_;
};

/// A column that is unpacked into memory.
class UnpackedColumn final : public Column {
public:
  /// `unpack` returns all rows in sequence.
  UnpackedColumn(ColumnHeader header, std::function<Bytes()> unpack)
      : Column(std::move(header)), unpack_(std::move(unpack)) {}
  void load() override { data_ = unpack_(); }

private:
  void copy(int64_t row, std::span<std::byte> to) const override;

  std::function<Bytes()> unpack_;
  Bytes data_;
};

/// A column of elements that begin at offset `begin` of a file, in row order.
std::unique_ptr<Column> mappedColumn(const std::shared_ptr<const MappedFile> &file, ColumnHeader header, int64_t begin);

/// Reads `bytes` bytes from a source that may have fewer. Memory grows with the available bytes, because a damaged
/// header may promise any size. `read` fills a buffer and returns the number of bytes read. If the source ends early,
/// `failShort` is called with the total, and must throw.
Bytes readGrowing(int64_t bytes, const std::function<int64_t(std::byte *, int64_t)> &read,
                  const std::function<void(int64_t)> &failShort);

} // namespace sluice::runtime
