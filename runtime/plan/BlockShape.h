// The shape of a weight in blocks of bytes (sluice/backend/blocks.h).
#pragma once

#include "runtime/plan/DType.h"

#include <cstdint>
#include <optional>

namespace sluice::runtime {

/// A tensor with blocks along one dimension: [outer, size, inner] in row-major order, where the blocks are along `size`.
struct BlockShape {
  int64_t outer = 1, size = 1, inner = 1;

  /// Of elements and scales with these shapes; none if there is not one scale for each block along one dimension.
  static std::optional<BlockShape> of(const Shape &elements, const Shape &scales);
};

} // namespace sluice::runtime
