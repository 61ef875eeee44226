// Copies rows of a data set into the inputs of an entry point.
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

/// For each input of an entry point, the rows of one call, row-major.
using Batch = std::vector<Bytes>;

/// Binds the columns of data to an entry point's inputs by name.
class Feed {
public:
  /// Reads only headers. `renamed` has "INPUT=COLUMN" for columns with other names. Every input must have a column whose rows
  /// fit. Either each input has a batch dimension, or all inputs have the same first dimension. `plan` must outlive
  /// this.
  Feed(const Plan &plan, const Entry &entry, const Table &table, const std::vector<std::string> &renamed);

  /// The rows of the data. If calls have a fixed number of rows, the remainder after the last whole call is excluded.
  int64_t rows() const { return data_.rows() - rowsLeftOut(); }
  /// Notes on the data for the user.
  const std::vector<std::string> &notes() const { return notes_; }
  /// The number of rows after the last whole call, if calls have a fixed number of rows; else 0.
  int64_t rowsLeftOut() const { return fixedRows_ > 0 ? data_.rows() % fixedRows_ : 0; }
  /// The fixed number of rows per call, from the model or from `takeWholeCalls`; else 0.
  int64_t fixedRows() const { return fixedRows_; }
  /// Fixes the number of rows per call, at most the number of rows of the data.
  void takeWholeCalls(int64_t rows) { fixedRows_ = std::min(rows, data_.rows()); }

  /// Unpacks the data and checks all indices. Call once, before any row is read. Fails if an index is out of the
  /// model's range, so that the error appears before training and not at the end of an epoch.
  void load();

  /// As Column::beginEpoch, between reads.
  void beginEpoch(uint64_t seed, uint64_t epoch) { data_.beginEpoch(seed, epoch); }

  /// Fills `batch` with the rows with these numbers. Thread-safe.
  void read(std::span<const uint32_t> numbers, Batch &batch) const;

  /// Sets the inputs of the next call.
  void set(Instance &instance, const Batch &batch, int64_t rows) const;

private:
  /// An input, and the location of its rows in a batch. If dimensions precede the batch dimension, a row is not
  /// contiguous there: it has one piece for each of their indices.
  struct Binding {
    const Value *input;
    Convert convert; ///< null: no conversion
    int64_t pieces = 1, pieceBytes = 0;
  };

  Binding bind(const Value &input, const ColumnHeader &column) const;
  void checkIndices(const Binding &binding, const Column &column) const;
  /// Reads the rows number `numbers[begin]` to `numbers[end - 1]` of a column into rows [begin, end) of `batch`.
  void readRows(size_t column, std::span<const uint32_t> numbers, size_t begin, size_t end, Bytes &batch) const;

  const Plan &plan_;
  std::vector<std::string> notes_;
  int64_t fixedRows_;
  Dataset data_;
  std::vector<Binding> bindings_; ///< one per input and data column, in order
};

} // namespace sluice::runtime
