// A data set: columns by name with one number of rows. DATA.md says which files and folders are one.
#pragma once

#include "runtime/data/tables/Table.h"

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace sluice::runtime {

class Dataset {
public:
  /// A column, and the shape of a row of what it fills.
  struct Wanted {
    std::string name;
    Shape row;
  };
  /// Opens these columns of `table`; only headers are read. Fails, naming files and columns, unless they agree on the
  /// number of rows, which is from 1 to 2^32 - 1, and each row has elements.
  Dataset(const Table &table, const std::vector<Wanted> &wanted);

  int64_t rows() const { return rows_; }
  size_t columns() const { return columns_.size(); }
  /// The columns are in the order of `wanted`.
  const Column &column(size_t number) const { return *columns_[number]; }

  /// Unpacks what is not read where it lies. Comes once, before rows are read.
  void load();
  /// As Column::beginEpoch, between reads.
  void beginEpoch(uint64_t seed, uint64_t epoch);

private:
  std::vector<std::unique_ptr<Column>> columns_;
  int64_t rows_ = 0;
};

} // namespace sluice::runtime
