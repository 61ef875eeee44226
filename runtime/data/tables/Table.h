// The columns of a file or folder of data, by name. A column is read only on request, so columns that a model does not
// use may have any type.
#pragma once

#include "runtime/data/tables/Column.h"

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::runtime {

struct Table {
  struct Source {
    std::string name;
    /// Reads and checks the header. `row` is the row shape of the input that the column fills. Most columns have a
    /// fixed row shape and ignore it; tokens and images are cut to this shape.
    std::function<std::unique_ptr<Column>(const Shape &row)> open;
  };

  std::string path; ///< path for messages
  std::vector<Source> columns;
  std::vector<std::string> notes = {};   ///< notes for users, for example on rows that are left out
  std::vector<std::string> classes = {}; ///< names of labels, if folders name them

  /// Opens the column of that name; fails with a list of the names if the column is missing.
  std::unique_ptr<Column> open(std::string_view name, const Shape &row = {}) const;
};

} // namespace sluice::runtime
