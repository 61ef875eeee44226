#include "backends/cpu/compiler/machine/Halves.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace sluice::cpu {

using namespace mlir;

namespace {

/// Vectors of one length, of integers and floats.
struct Words {
  OpBuilder &b;
  Location loc;
  VectorType i16, i32, f16, f32;

  Words(OpBuilder &b, Location loc, Value like)
      : b(b), loc(loc), i16(typeLike(like, b.getI16Type())), i32(typeLike(like, b.getI32Type())),
        f16(typeLike(like, b.getF16Type())), f32(typeLike(like, b.getF32Type())) {}

  template <typename Op, typename... Args> Value make(Args &&...args) const {
    return b.create<Op>(loc, std::forward<Args>(args)...);
  }
  Value constant(uint32_t number) const {
    return make<arith::ConstantOp>(DenseElementsAttr::get(i32, b.getI32IntegerAttr(int32_t(number)).getValue()));
  }

private:
  static VectorType typeLike(Value like, Type element) {
    return cast<VectorType>(cast<VectorType>(like.getType()).clone(element));
  }
};

} // namespace

Type typeInMemory(Type half) { return half.isBF16() ? IntegerType::get(half.getContext(), 16) : half; }

Value widenHalf(OpBuilder &b, Location loc, Value stored, Type half) {
  Words w(b, loc, stored);
  if (half.isF16())
    return w.make<arith::ExtFOp>(w.f32, stored);
  Value bits = w.make<arith::ExtUIOp>(w.i32, stored);
  return w.make<arith::BitcastOp>(w.f32, w.make<arith::ShLIOp>(bits, w.constant(16)));
}

// Rounding: adds just less than half of the last kept digit, or exactly half if that digit is odd.
Value roundToHalf(OpBuilder &b, Location loc, Value vector, Type half) {
  Words w(b, loc, vector);
  if (half.isF16())
    return w.make<arith::ExtFOp>(w.f32, w.make<arith::TruncFOp>(w.f16, vector));
  Value bits = w.make<arith::BitcastOp>(w.i32, vector);
  Value odd = w.make<arith::AndIOp>(w.make<arith::ShRUIOp>(bits, w.constant(16)), w.constant(1));
  Value rounded = w.make<arith::AddIOp>(bits, w.make<arith::AddIOp>(odd, w.constant(0x7fff)));
  Value isNan = w.make<arith::CmpFOp>(arith::CmpFPredicate::UNO, vector, vector);
  Value quiet = w.make<arith::OrIOp>(bits, w.constant(0x400000));
  Value chosen = w.make<arith::SelectOp>(isNan, quiet, rounded);
  return w.make<arith::BitcastOp>(w.f32, w.make<arith::AndIOp>(chosen, w.constant(0xffff0000)));
}

Value narrowToHalf(OpBuilder &b, Location loc, Value vector, Type half) {
  Words w(b, loc, vector);
  if (half.isF16())
    return w.make<arith::TruncFOp>(w.f16, vector);
  Value bits = w.make<arith::BitcastOp>(w.i32, vector);
  return w.make<arith::TruncIOp>(w.i16, w.make<arith::ShRUIOp>(bits, w.constant(16)));
}

} // namespace sluice::cpu
