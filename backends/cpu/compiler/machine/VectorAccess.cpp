#include "backends/cpu/compiler/machine/VectorAccess.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace sluice::cpu {

using namespace mlir;

static unsigned elementAlignment(Type element) {
  return element.getIntOrFloatBitWidth() < 8 ? 1 : element.getIntOrFloatBitWidth() / 8;
}

Value constantI64(OpBuilder &b, Location loc, int64_t value) { return b.create<arith::ConstantIntOp>(loc, value, 64); }

Value elementAddress(OpBuilder &b, Location loc, Type element, Value base, Value offset) {
  return b.create<LLVM::GEPOp>(loc, base.getType(), element, base, ArrayRef<LLVM::GEPArg>{offset});
}

Value elementAddress(OpBuilder &b, Location loc, Type element, Value base, int64_t offset) {
  if (offset == 0)
    return base;
  if (offset == static_cast<int32_t>(offset))
    return b.create<LLVM::GEPOp>(loc, base.getType(), element, base,
                                 ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(offset)});
  return elementAddress(b, loc, element, base, constantI64(b, loc, offset));
}

Value loadScalar(OpBuilder &b, Location loc, Type element, Value address) {
  return b.create<LLVM::LoadOp>(loc, element, address, elementAlignment(element));
}

Value loadBroadcast(OpBuilder &b, Location loc, VectorType type, Value address) {
  return b.create<vector::BroadcastOp>(loc, type, loadScalar(b, loc, type.getElementType(), address));
}

Value loadVector(OpBuilder &b, Location loc, VectorType type, Value address) {
  return b.create<LLVM::LoadOp>(loc, type, address, elementAlignment(type.getElementType()));
}

Value loadFirstLanes(OpBuilder &b, Location loc, VectorType type, Value address, int64_t lanes) {
  if (lanes >= type.getNumElements())
    return loadVector(b, loc, type, address);
  SmallVector<bool> bits(type.getNumElements(), false);
  std::fill_n(bits.begin(), lanes, true);
  auto maskType = VectorType::get(type.getShape(), b.getI1Type());
  Value mask = b.create<arith::ConstantOp>(loc, DenseElementsAttr::get(maskType, ArrayRef<bool>(bits)));
  Value zero = b.create<arith::ConstantOp>(loc, b.getZeroAttr(type));
  return b.create<LLVM::MaskedLoadOp>(loc, type, address, mask, ValueRange{zero},
                                      elementAlignment(type.getElementType()));
}

void storeVector(OpBuilder &b, Location loc, Value vector, Value address) {
  b.create<LLVM::StoreOp>(loc, vector, address, elementAlignment(getElementTypeOrSelf(vector.getType())));
}

Value firstLanes(OpBuilder &b, Location loc, Value vector, int64_t lanes) {
  auto type = cast<VectorType>(vector.getType());
  if (lanes >= type.getNumElements())
    return vector;
  return b.create<vector::ExtractStridedSliceOp>(loc, vector, ArrayRef<int64_t>{0}, ArrayRef<int64_t>{lanes},
                                                 ArrayRef<int64_t>{1});
}

void prefetch(OpBuilder &b, Location loc, Value address, bool forWrite, int locality) {
  b.create<LLVM::Prefetch>(loc, address, /*rw=*/forWrite ? 1 : 0, /*hint=*/locality, /*cache=*/1);
}

} // namespace sluice::cpu
