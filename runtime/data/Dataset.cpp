#include "runtime/data/Dataset.h"

#include "runtime/base/Status.h"
#include "runtime/base/Text.h"

namespace sluice::runtime {

static std::string named(const ColumnHeader &header) { return concat(header.file, ": column ", quote(header.name)); }

static void checkRows(const ColumnHeader &header, const ColumnHeader &first) {
  if (header.rows < 1)
    failInvalid(concat(named(header), " has no rows"));
  if (header.rows > UINT32_MAX)
    failInvalid(concat(named(header), " has ", header.rows, " rows, more than the limit of ", UINT32_MAX));
  if (elementsOf(header.shape) < 1)
    failInvalid(concat(named(header), " has rows without elements: ", typeText(header.dtype, header.shape)));
  if (header.rows != first.rows)
    failInvalid(concat(named(header), " has ", header.rows, " rows, but ", named(first), " has ", first.rows));
}

Dataset::Dataset(const Table &table, const std::vector<Wanted> &wanted) {
  for (const auto &[name, row] : wanted) {
    columns_.push_back(table.open(name, row));
    checkRows(columns_.back()->header(), columns_.front()->header());
  }
  rows_ = columns_.empty() ? 0 : columns_.front()->header().rows;
}

void Dataset::load() {
  for (const std::unique_ptr<Column> &column : columns_)
    column->load();
}

void Dataset::beginEpoch(uint64_t seed, uint64_t epoch) {
  for (const std::unique_ptr<Column> &column : columns_)
    column->beginEpoch(seed, epoch);
}

} // namespace sluice::runtime
