// Quantizes tensors to blocks of bytes with scales (sluice/backend/blocks.h), as a formula of ordinary ops.
#pragma once

#include "ir/build/Node.h"

namespace sluice::ir {

struct Blocks {
  Node elements; ///< ui8, of the shape of the tensor
  Node scales;   ///< f16, one for each block
};

/// The blocks of an f32 tensor along `axis`, whose size is a multiple of the size of a block. A block whose largest
/// element is above 127 times the largest f16 has an infinite scale.
Blocks quantized(Node x, int64_t axis);
/// The f32 values of the blocks.
Node dequantized(const Blocks &blocks, int64_t axis);

} // namespace sluice::ir
