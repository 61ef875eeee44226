// What a file or a folder of data offers: columns by name. Nothing of a column is read before it is asked for, so what
// a model does not want may be of any kind.
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
    /// Reads and checks the header. `row` is the shape of what the column's rows are to fill: most columns have a shape of
    /// their own, others are cut to that one.
    std::function<std::unique_ptr<Column>(const Shape &row)> open;
  };

  std::string path; ///< for messages
  std::vector<Source> columns;
  std::vector<std::string> notes = {};   ///< for users, for example the rows that are left out
  std::vector<std::string> classes = {}; ///< the names of labels, where folders name them

  /// Opens the column of that name; an error that lists the names if there is none.
  std::unique_ptr<Column> open(std::string_view name, const Shape &row = {}) const;
};

} // namespace sluice::runtime
