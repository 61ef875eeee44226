// A data set: columns by name with one number of rows. DATA.md says which files and folders are one.
#pragma once

#include "runtime/data/Table.h"

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace sluice::runtime {

class Dataset {
public:
  /// Opens these columns of `table`; only headers are read. Fails, naming files and columns, unless they agree on the
  /// number of rows, which is from 1 to 2^32 - 1, and each row has elements.
  Dataset(const Table &table, const std::vector<std::string> &names);

  int64_t rows() const { return rows_; }
  size_t columns() const { return columns_.size(); }
  /// The columns are in the order of `names`.
  const Column &column(size_t number) const { return *columns_[number]; }

  /// Unpacks what is not read where it lies. Comes once, before rows are read.
  void load();

private:
  std::vector<std::unique_ptr<Column>> columns_;
  int64_t rows_ = 0;
};

} // namespace sluice::runtime
