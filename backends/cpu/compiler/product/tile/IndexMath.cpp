#include "backends/cpu/compiler/product/tile/IndexMath.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace sluice::cpu {

using namespace mlir;

Value IndexMath::constant(int64_t value) const { return b.create<arith::ConstantIntOp>(loc, value, 64); }
Value IndexMath::add(Value x, Value y) const { return b.createOrFold<arith::AddIOp>(loc, x, y); }
Value IndexMath::add(Value x, int64_t y) const { return y == 0 ? x : add(x, constant(y)); }
Value IndexMath::sub(Value x, Value y) const { return b.createOrFold<arith::SubIOp>(loc, x, y); }
Value IndexMath::mul(Value x, int64_t y) const { return b.createOrFold<arith::MulIOp>(loc, x, constant(y)); }
Value IndexMath::min(Value x, Value y) const { return b.createOrFold<arith::MinSIOp>(loc, x, y); }
Value IndexMath::max(Value x, Value y) const { return b.createOrFold<arith::MaxSIOp>(loc, x, y); }
Value IndexMath::less(Value x, Value y) const {
  return b.createOrFold<arith::CmpIOp>(loc, arith::CmpIPredicate::slt, x, y);
}
Value IndexMath::div(Value x, int64_t y) const {
  return y == 1 ? x : b.createOrFold<arith::DivUIOp>(loc, x, constant(y));
}
Value IndexMath::rem(Value x, int64_t y) const {
  return y == 1 ? constant(0) : b.createOrFold<arith::RemUIOp>(loc, x, constant(y));
}
Value IndexMath::div(Value x, Value y) const { return b.createOrFold<arith::DivUIOp>(loc, x, y); }
Value IndexMath::rem(Value x, Value y) const { return b.createOrFold<arith::RemUIOp>(loc, x, y); }
Value IndexMath::ceilDiv(Value x, int64_t y) const { return div(add(x, y - 1), y); }
Value IndexMath::roundDown(Value x, int64_t y) const { return mul(div(x, y), y); }

SmallVector<Value> IndexMath::delinearize(Value x, ArrayRef<int64_t> sizes) const {
  SmallVector<Value> coordinates(sizes.size());
  for (size_t i = sizes.size(); i-- > 0;) {
    coordinates[i] = i == 0 ? x : rem(x, sizes[i]);
    x = i == 0 ? x : div(x, sizes[i]);
  }
  return coordinates;
}

Value IndexMath::dot(Value x, ArrayRef<int64_t> sizes, ArrayRef<int64_t> strides) const {
  Value sum = constant(0);
  for (auto [coordinate, stride] : llvm::zip(delinearize(x, sizes), strides))
    sum = add(sum, mul(coordinate, stride));
  return sum;
}

} // namespace sluice::cpu
