// A data set: named columns with the same number of rows. DATA.md lists the supported files and folders.
#pragma once

#include "runtime/data/tables/Table.h"

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace sluice::runtime {

class Dataset {
public:
  /// A requested column, and the shape of a row of the input that it fills.
  struct Wanted {
    std::string name;
    Shape row;
  };
  /// Opens these columns of `table` and reads only their headers. All columns must have the same number of rows, from 1
  /// to 2^32 - 1, and rows must have elements. Errors contain file and column names.
  Dataset(const Table &table, const std::vector<Wanted> &wanted);

  int64_t rows() const { return rows_; }
  size_t columns() const { return columns_.size(); }
  /// The columns are in the order of `wanted`.
  const Column &column(size_t number) const { return *columns_[number]; }

  /// Unpacks columns that cannot be mapped. Call once, before any row is read.
  void load();
  /// As Column::beginEpoch, between reads.
  void beginEpoch(uint64_t seed, uint64_t epoch);

private:
  std::vector<std::unique_ptr<Column>> columns_;
  int64_t rows_ = 0;
};

} // namespace sluice::runtime
