#include "runtime/plan/BlockShape.h"

#include "sluice/backend/blocks.h"

namespace sluice::runtime {

std::optional<BlockShape> BlockShape::of(const Shape &elements, const Shape &scales) {
  if (elements.size() != scales.size())
    return std::nullopt;
  std::optional<BlockShape> found;
  int64_t outer = 1;
  for (size_t dim = 0; dim < elements.size(); ++dim) {
    int64_t size = elements[dim];
    if (size == scales[dim]) {
      (found ? found->inner : outer) *= size;
      continue;
    }
    if (found || scales[dim] * SLUICE_BLOCK_ELEMENTS != size)
      return std::nullopt;
    found = BlockShape{outer, size, 1};
  }
  return found;
}

} // namespace sluice::runtime
