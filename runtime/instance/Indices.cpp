#include "runtime/instance/Indices.h"

#include "runtime/base/Status.h"
#include "runtime/base/Text.h"

namespace sluice::runtime {

void checkIndices(const Plan &plan, const Value &input, const std::byte *data, const RowShare &share, int64_t room) {
  if (input.below == 0)
    return;
  bool batched = input.rowsDim >= 0;
  RowBlocks blocks(input, plan);
  int64_t perRow = blocks.rowBytes / static_cast<int64_t>(sizeOf(input.dtype)),
          used = batched ? share.rows * perRow : perRow, stride = batched && room > 0 ? room : blocks.room;
  for (int64_t block = 0; block < blocks.outer; ++block)
    for (int64_t i = 0; i < used; ++i) {
      double index = elementAsDouble(input.dtype, data, block * stride * perRow + i);
      if (!input.takesIndex(index))
        failInvalid(concat("input ", quote(input.name),
                           batched ? concat(", row ", share.first + i / perRow) : concat(", element ", i), ": ",
                           static_cast<int64_t>(index), " is none of the ", input.indicesText()));
    }
}

} // namespace sluice::runtime
