// Weights in blocks of bytes with a scale for each block (sluice/backend/blocks.h).
#pragma once

#include "runtime/io/TensorSource.h"
#include "runtime/plan/BlockShape.h"

namespace sluice::runtime {

/// Elements and scales, each row-major.
struct Blocks {
  Bytes elements; ///< two's complement
  Bytes scales;   ///< f16
};

/// The blocks of an f32 tensor. Fails with the name of the tensor if an element is not finite, or too large for a scale
/// in f16.
Blocks quantize(const TensorSource &source, const BlockShape &shape);

/// The f32 values of blocks.
Bytes dequantize(const Blocks &blocks, const BlockShape &shape);

} // namespace sluice::runtime
