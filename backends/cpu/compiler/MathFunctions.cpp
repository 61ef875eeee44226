#include "backends/cpu/compiler/MathFunctions.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/TypeUtilities.h"

namespace sluice::cpu {

using namespace mlir;

namespace {

// Arithmetic on values of one type, scalars or vectors.
struct Formula {
  OpBuilder &b;
  Location loc;
  Type type;

  Type like(Type element) const {
    auto vector = dyn_cast<VectorType>(type);
    return vector ? Type(vector.clone(element)) : element;
  }
  Value constant(double value) const {
    TypedAttr number = FloatAttr::get(getElementTypeOrSelf(type), value);
    if (auto vector = dyn_cast<VectorType>(type))
      number = DenseElementsAttr::get(vector, Attribute(number));
    return b.create<arith::ConstantOp>(loc, number);
  }
  Value add(Value x, Value y) const { return b.create<arith::AddFOp>(loc, x, y); }
  Value sub(Value x, Value y) const { return b.create<arith::SubFOp>(loc, x, y); }
  Value mul(Value x, Value y) const { return b.create<arith::MulFOp>(loc, x, y); }
  Value div(Value x, Value y) const { return b.create<arith::DivFOp>(loc, x, y); }
  Value fma(Value x, Value y, Value z) const { return b.create<math::FmaOp>(loc, x, y, z); }
  Value fma(Value x, Value y, double z) const { return fma(x, y, constant(z)); }
  Value abs(Value x) const { return b.create<math::AbsFOp>(loc, x); }
  Value exp(Value x) const { return b.create<math::ExpOp>(loc, x); }
  Value withSign(Value x, Value sign) const { return b.create<math::CopySignOp>(loc, x, sign); }
  Value less(Value x, double y) const {
    return b.create<arith::CmpFOp>(loc, arith::CmpFPredicate::OLT, x, constant(y));
  }
  Value select(Value condition, Value x, Value y) const { return b.create<arith::SelectOp>(loc, condition, x, y); }
  // c[0] x^(n-1) + ... + c[n-1]
  Value polynomial(Value x, ArrayRef<double> c) const {
    Value sum = constant(c[0]);
    for (double next : c.drop_front())
      sum = fma(sum, x, next);
    return sum;
  }
};

template <typename Op> struct Expansion : OpRewritePattern<Op> {
  using Build = Value (*)(const Formula &, Value);
  Expansion(MLIRContext *context, Build build) : OpRewritePattern<Op>(context, /*benefit=*/10), build(build) {}
  LogicalResult matchAndRewrite(Op op, PatternRewriter &rewriter) const override {
    if (!getElementTypeOrSelf(op.getType()).isF32())
      return failure();
    rewriter.replaceOp(op, build(Formula{rewriter, op.getLoc(), op.getType()}, op.getOperand()));
    return success();
  }
  Build build;
};

} // namespace

// An odd polynomial near zero (Cephes); 1 - 2 / (e^2|x| + 1) elsewhere.
static Value tanh(const Formula &f, Value x) {
  Value square = f.mul(x, x), size = f.abs(x);
  Value inner = f.polynomial(
      square, {-5.70498872745e-3, 2.06390887954e-2, -5.37397155531e-2, 1.33314422036e-1, -3.33332819422e-1});
  Value small = f.fma(f.mul(inner, square), x, x);
  Value large = f.sub(f.constant(1), f.div(f.constant(2), f.add(f.exp(f.add(size, size)), f.constant(1))));
  return f.withSign(f.select(f.less(size, 0.625), small, large), x);
}

// An odd polynomial near zero; 1 - e^p(|x|) elsewhere. Both by N. Juffa.
static Value erf(const Formula &f, Value x) {
  Value square = f.mul(x, x), size = f.abs(x);
  Value inner = f.polynomial(
      square, {-5.96761703e-4, 4.99119423e-3, -2.67681349e-2, 1.12819925e-1, -3.76125336e-1, 1.28379166e-1});
  Value small = f.fma(inner, x, x);
  // Beyond 4 the exponential has vanished; the polynomial would turn around further out.
  Value t = f.b.create<arith::MinimumFOp>(f.loc, size, f.constant(4));
  Value tSquare = f.mul(t, t);
  Value high = f.fma(f.constant(-1.72853470e-5), t, 3.83197126e-4);
  Value low = f.fma(f.constant(-3.88396438e-3), t, 2.42546219e-2);
  Value exponent = f.fma(high, tSquare, low);
  for (double c : {-1.06777877e-1, -6.34846687e-1, -1.28717512e-1})
    exponent = f.fma(exponent, t, c);
  exponent = f.fma(exponent, t, f.b.create<arith::NegFOp>(f.loc, t));
  Value large = f.withSign(f.sub(f.constant(1), f.exp(exponent)), x);
  return f.select(f.less(size, 0.927734375), small, large);
}

// x = k pi/2 + r in double precision, so that r keeps its relative accuracy; then the polynomials of Cephes on |r| <=
// pi/4, and the quadrant's choice and sign.
static Value sinOfQuadrant(const Formula &f, Value x, double shift) {
  Formula wide{f.b, f.loc, f.like(f.b.getF64Type())};
  Value exact = f.b.create<arith::ExtFOp>(f.loc, wide.type, x);
  Value k = f.b.create<math::RoundEvenOp>(f.loc, wide.mul(exact, wide.constant(0.63661977236758134)));
  Value rest = wide.fma(k, wide.constant(-1.5707963267948966), exact);
  rest = wide.fma(k, wide.constant(-6.123233995736766e-17), rest);
  Value r = f.b.create<arith::TruncFOp>(f.loc, f.type, rest);
  // k mod 4 in [0, 4), exact in floats.
  Value quadrant = wide.add(k, wide.constant(shift));
  quadrant = wide.sub(
      quadrant, wide.mul(f.b.create<math::FloorOp>(f.loc, wide.mul(quadrant, wide.constant(0.25))), wide.constant(4)));
  Value q = f.b.create<arith::TruncFOp>(f.loc, f.type, quadrant);

  Value square = f.mul(r, r);
  Value sine = f.fma(f.mul(f.polynomial(square, {-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1}), square), r, r);
  Value cosine = f.polynomial(square, {2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2, -0.5, 1});
  Value isOdd =
      f.b.create<arith::OrIOp>(f.loc, f.b.create<arith::CmpFOp>(f.loc, arith::CmpFPredicate::OEQ, q, f.constant(1)),
                               f.b.create<arith::CmpFOp>(f.loc, arith::CmpFPredicate::OEQ, q, f.constant(3)));
  Value value = f.select(isOdd, cosine, sine);
  Value isNegative = f.b.create<arith::CmpFOp>(f.loc, arith::CmpFPredicate::OGE, q, f.constant(2));
  value = f.select(isNegative, f.b.create<arith::NegFOp>(f.loc, value), value);
  value = f.b.create<arith::MinimumFOp>(f.loc, value, f.constant(1));
  return f.b.create<arith::MaximumFOp>(f.loc, value, f.constant(-1));
}

static Value sin(const Formula &f, Value x) {
  // Signed zeros: r is x, but r + 0 k would lose the sign.
  Value value = sinOfQuadrant(f, x, 0);
  Value isZero = f.b.create<arith::CmpFOp>(f.loc, arith::CmpFPredicate::OEQ, x, f.constant(0));
  return f.select(isZero, x, value);
}

static Value cos(const Formula &f, Value x) { return sinOfQuadrant(f, x, 1); }

void populateMathFunctionPatterns(RewritePatternSet &patterns) {
  MLIRContext *context = patterns.getContext();
  patterns.add<Expansion<math::TanhOp>>(context, tanh);
  patterns.add<Expansion<math::ErfOp>>(context, erf);
  patterns.add<Expansion<math::SinOp>>(context, sin);
  patterns.add<Expansion<math::CosOp>>(context, cos);
}

} // namespace sluice::cpu
