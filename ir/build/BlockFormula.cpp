#include "ir/build/BlockFormula.h"

#include "ir/Dialect.h"
#include "sluice/backend/blocks.h"
#include <limits>

using namespace mlir;

namespace sluice::ir {

/// The nearest integers, halves away from zero.
static Node roundedAway(Node x) {
  Node towardZero = castTo(castTo(x, IntegerType::get(x.value.getContext(), 32)), x.type().getElementType());
  Node rest = x - towardZero;
  return towardZero + where(abs(rest) >= 0.5, sign(x), 0.0);
}

Blocks quantized(Node x, int64_t axis) {
  OpBuilder &builder = *x.builder;
  SmallVector<int64_t> shape(x.type().getShape()), ofScales(shape), ofBlocks(shape);
  ofScales[axis] /= SLUICE_BLOCK_ELEMENTS;
  ofBlocks[axis] = SLUICE_BLOCK_ELEMENTS;
  ofBlocks.insert(ofBlocks.begin() + axis, ofScales[axis]);
  Node blocks = reshape(x, ofBlocks);
  int64_t within[] = {axis + 1};
  Node largest(builder, x.loc, builder.create<ReduceMaxOp>(x.loc, abs(blocks), within, /*keepdims=*/false));
  Node d = largest / double(SLUICE_BLOCK_LARGEST);
  constexpr double leastNormal = std::numeric_limits<float>::min(); // 1 / d could be infinite below
  Node inverse = where(d < leastNormal, 0.0, 1.0 / d);
  Node integers = roundedAway(blocks * expandOver(inverse, within, blocks.type()));
  // A cast of integers wraps around, which leaves the two's complement; one of floats saturates.
  Node bytes = castTo(castTo(integers, builder.getI32Type()), builder.getIntegerType(8, /*isSigned=*/false));
  return {reshape(bytes, shape), castTo(d, builder.getF16Type())};
}

Node dequantized(const Blocks &blocks, int64_t axis) {
  OpBuilder &builder = *blocks.elements.builder;
  Location loc = blocks.elements.loc;
  return Node(builder, loc, builder.create<DequantizeBlocksOp>(loc, blocks.elements, blocks.scales, axis));
}

} // namespace sluice::ir
