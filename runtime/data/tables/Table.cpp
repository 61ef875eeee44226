#include "runtime/data/tables/Table.h"

#include "runtime/base/Status.h"
#include "runtime/base/Text.h"

namespace sluice::runtime {

std::unique_ptr<Column> Table::open(std::string_view name, const Shape &row) const {
  std::vector<std::string> names;
  for (const Source &column : columns) {
    if (column.name == name)
      return column.open(row);
    names.push_back(quote(column.name));
  }
  failInvalid(concat(path, ": has no column ", quote(name), " (columns: ", listed(names), ")"));
}

} // namespace sluice::runtime
