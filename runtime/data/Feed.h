// Rows of a data set on their way into the inputs of an entry point.
#pragma once

#include "runtime/base/Text.h"
#include "runtime/data/Dataset.h"
#include "runtime/instance/Instance.h"
#include "runtime/io/Convert.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace sluice::runtime {

/// Of each input of an entry point, the rows of one call, row-major.
using Batch = std::vector<Bytes>;

/// Binds the columns of data to an entry point's inputs by name.
class Feed {
public:
  /// Reads headers alone. `renamed` says which inputs take a column of another name. Fails unless each input has a
  /// batch dimension, or all have as many rows along the first, and a column whose rows fit. `plan` must outlive this.
  Feed(const Plan &plan, const Entry &entry, const Table &table, const std::vector<NamedText> &renamed);

  /// Those of the data; where calls have a fixed number of them, without what is left behind the last whole call.
  int64_t rows() const { return data_.rows() - rowsLeftOut(); }
  /// What users are told about the data.
  const std::vector<std::string> &notes() const { return notes_; }
  int64_t rowsLeftOut() const { return fixedRows_ > 0 ? data_.rows() % fixedRows_ : 0; }
  /// How many rows every call has, if the model or `takeWholeCalls` says so; else 0.
  int64_t fixedRows() const { return fixedRows_; }
  /// From now on calls have so many rows, or all there are, if these are fewer.
  void takeWholeCalls(int64_t rows) { fixedRows_ = std::min(rows, data_.rows()); }

  /// Once, before any row is read. Fails if a row of indices names none of the model's classes, so that no epoch is
  /// lost to a row that the last one would find.
  void load();

  /// As Column::beginEpoch, between reads.
  void beginEpoch(uint64_t seed, uint64_t epoch) { data_.beginEpoch(seed, epoch); }

  /// Fills `batch` with the rows that have these numbers. Any thread may call this.
  void read(std::span<const uint32_t> numbers, Batch &batch) const;

  /// Sets the inputs of the next call.
  void set(Instance &instance, const Batch &batch, int64_t rows) const;

private:
  /// Where a row of an input lies among `rows` others: in `pieces` pieces of as many bytes.
  struct Binding {
    const Value *input;
    Convert convert; ///< null: none
    int64_t pieces = 1, pieceBytes = 0;
  };

  Binding bind(const Value &input, const ColumnHeader &column) const;
  void checkIndices(const Binding &binding, const Column &column) const;
  /// Rows [begin, end) of `numbers` of a column, which go to `batch`.
  void readRows(size_t column, std::span<const uint32_t> numbers, size_t begin, size_t end, Bytes &batch) const;

  const Plan &plan_;
  std::vector<std::string> notes_;
  int64_t fixedRows_;
  Dataset data_;
  std::vector<Binding> bindings_; ///< of the inputs and of the data's columns, in their order
};

} // namespace sluice::runtime
