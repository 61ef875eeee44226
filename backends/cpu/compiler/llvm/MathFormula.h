// Arithmetic on values of one type: scalars or vectors of f32 or f64. The expansions of math functions use it.
#pragma once

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/TypeUtilities.h"

namespace sluice::cpu {

struct Formula {
  using Value = mlir::Value;

  mlir::OpBuilder &b;
  mlir::Location loc;
  mlir::Type type;

  mlir::Type like(mlir::Type element) const {
    auto vector = mlir::dyn_cast<mlir::VectorType>(type);
    return vector ? mlir::Type(vector.clone(element)) : element;
  }
  Value constant(double value) const {
    return spread(type, mlir::FloatAttr::get(mlir::getElementTypeOrSelf(type), value));
  }
  Value add(Value x, Value y) const { return b.create<mlir::arith::AddFOp>(loc, x, y); }
  Value sub(Value x, Value y) const { return b.create<mlir::arith::SubFOp>(loc, x, y); }
  Value mul(Value x, Value y) const { return b.create<mlir::arith::MulFOp>(loc, x, y); }
  Value div(Value x, Value y) const { return b.create<mlir::arith::DivFOp>(loc, x, y); }
  Value fma(Value x, Value y, Value z) const { return b.create<mlir::math::FmaOp>(loc, x, y, z); }
  Value fma(Value x, Value y, double z) const { return fma(x, y, constant(z)); }
  Value abs(Value x) const { return b.create<mlir::math::AbsFOp>(loc, x); }
  Value floor(Value x) const { return b.create<mlir::math::FloorOp>(loc, x); }
  Value exp(Value x) const { return b.create<mlir::math::ExpOp>(loc, x); }
  Value withSign(Value x, Value sign) const { return b.create<mlir::math::CopySignOp>(loc, x, sign); }
  Value compare(mlir::arith::CmpFPredicate predicate, Value x, Value y) const {
    return b.create<mlir::arith::CmpFOp>(loc, predicate, x, y);
  }
  Value is(Value x, double y) const { return compare(mlir::arith::CmpFPredicate::OEQ, x, constant(y)); }
  Value less(Value x, double y) const { return compare(mlir::arith::CmpFPredicate::OLT, x, constant(y)); }
  // x clamped to [-bound, bound]; NaN stays NaN.
  Value clamp(Value x, double bound) const {
    Value below = b.create<mlir::arith::MinimumFOp>(loc, x, constant(bound));
    return b.create<mlir::arith::MaximumFOp>(loc, below, constant(-bound));
  }
  // x, or the bound if x is above it; NaN stays NaN. One instruction.
  Value atMost(Value x, double bound) const {
    return select(compare(mlir::arith::CmpFPredicate::ULE, x, constant(bound)), x, constant(bound));
  }
  Value either(Value x, Value y) const { return b.create<mlir::arith::OrIOp>(loc, x, y); }
  Value select(Value condition, Value x, Value y) const {
    return b.create<mlir::arith::SelectOp>(loc, condition, x, y);
  }
  // c[0] x^(n-1) + ... + c[n-1]
  Value polynomial(Value x, llvm::ArrayRef<double> c) const {
    Value sum = constant(c[0]);
    for (double next : c.drop_front())
      sum = fma(sum, x, next);
    return sum;
  }

  Value spread(mlir::Type type, mlir::TypedAttr number) const {
    if (auto vector = mlir::dyn_cast<mlir::VectorType>(type))
      number = mlir::DenseElementsAttr::get(vector, mlir::Attribute(number));
    return b.create<mlir::arith::ConstantOp>(loc, number);
  }
};

/// The bits of a formula's floats, as integers of the same width.
struct FloatBits {
  using Value = mlir::Value;

  const Formula &f;
  bool isDouble = mlir::getElementTypeOrSelf(f.type).isF64();
  mlir::Type element = f.b.getIntegerType(isDouble ? 64 : 32);
  mlir::Type type = f.like(element);

  Value of(Value x) const { return f.b.create<mlir::arith::BitcastOp>(f.loc, type, x); }
  Value asFloat(Value bits) const { return f.b.create<mlir::arith::BitcastOp>(f.loc, f.type, bits); }
  Value constant(uint64_t value) const {
    return f.spread(type, mlir::IntegerAttr::get(element, llvm::APInt(element.getIntOrFloatBitWidth(), value)));
  }
  Value add(Value x, Value y) const { return f.b.create<mlir::arith::AddIOp>(f.loc, x, y); }
  Value sub(Value x, Value y) const { return f.b.create<mlir::arith::SubIOp>(f.loc, x, y); }
  Value half(Value x) const { return f.b.create<mlir::arith::ShRUIOp>(f.loc, x, constant(1)); }
  Value toExponent(Value x) const { return f.b.create<mlir::arith::ShLIOp>(f.loc, x, constant(mantissa())); }
  Value fromExponent(Value x) const { return f.b.create<mlir::arith::ShRSIOp>(f.loc, x, constant(mantissa())); }
  Value toFloat(Value x) const { return f.b.create<mlir::arith::SIToFPOp>(f.loc, f.type, x); }

private:
  uint64_t mantissa() const { return isDouble ? 52 : 23; }
};

} // namespace sluice::cpu
