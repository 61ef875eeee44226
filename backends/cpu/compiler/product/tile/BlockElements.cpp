#include "backends/cpu/compiler/product/tile/BlockElements.h"

#include "backends/cpu/compiler/machine/Halves.h"
#include "backends/cpu/compiler/machine/VectorAccess.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace sluice::cpu {

using namespace mlir;

Type elementInBlocks(MLIRContext *context) { return IntegerType::get(context, 8); }

Value loadScales(OpBuilder &b, Location loc, VectorType type, Value address) {
  Type half = b.getF16Type();
  return widenHalf(b, loc, loadVector(b, loc, cast<VectorType>(type.clone(half)), address), half);
}

Value scaled(OpBuilder &b, Location loc, Value stored, Value scales) {
  Value integers = b.create<arith::SIToFPOp>(loc, scales.getType(), stored);
  return b.create<arith::MulFOp>(loc, integers, scales);
}

} // namespace sluice::cpu
