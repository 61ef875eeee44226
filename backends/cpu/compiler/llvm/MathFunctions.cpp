#include "backends/cpu/compiler/llvm/MathFunctions.h"

#include "backends/cpu/compiler/llvm/MathDoubles.h"
#include "backends/cpu/compiler/llvm/MathExponentials.h"
#include "backends/cpu/compiler/llvm/MathHyperbolic.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"

#include <cmath>

namespace sluice::cpu {

using namespace mlir;

namespace {

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
  Value twice = f.atMost(f.add(size, size), 40); // beyond, the result is 1
  Value large = f.sub(f.constant(1), f.div(f.constant(2), f.add(expOfNormal(f, twice), f.constant(1))));
  return f.withSign(f.select(f.less(size, 0.625), small, large), x);
}

// An odd polynomial near zero; 1 - e^p(|x|) elsewhere. Both by N. Juffa.
static Value erf(const Formula &f, Value x) {
  Value square = f.mul(x, x), size = f.abs(x);
  Value inner = f.polynomial(
      square, {-5.96761703e-4, 4.99119423e-3, -2.67681349e-2, 1.12819925e-1, -3.76125336e-1, 1.28379166e-1});
  Value small = f.fma(inner, x, x);
  // Beyond 4 the exponential is 0; the polynomial is not monotonic further out.
  Value t = f.atMost(size, 4);
  Value tSquare = f.mul(t, t);
  Value high = f.fma(f.constant(-1.72853470e-5), t, 3.83197126e-4);
  Value low = f.fma(f.constant(-3.88396438e-3), t, 2.42546219e-2);
  Value exponent = f.fma(high, tSquare, low);
  for (double c : {-1.06777877e-1, -6.34846687e-1, -1.28717512e-1})
    exponent = f.fma(exponent, t, c);
  exponent = f.fma(exponent, t, f.b.create<arith::NegFOp>(f.loc, t));
  Value large = f.withSign(f.sub(f.constant(1), expOfNormal(f, exponent)), x);
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
  quadrant = wide.sub(quadrant, wide.mul(wide.floor(wide.mul(quadrant, wide.constant(0.25))), wide.constant(4)));
  Value q = f.b.create<arith::TruncFOp>(f.loc, f.type, quadrant);

  Value square = f.mul(r, r);
  Value sine = f.fma(f.mul(f.polynomial(square, {-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1}), square), r, r);
  Value cosine = f.polynomial(square, {2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2, -0.5, 1});
  Value value = f.select(f.either(f.is(q, 1), f.is(q, 3)), cosine, sine);
  Value isNegative = f.compare(arith::CmpFPredicate::OGE, q, f.constant(2));
  value = f.select(isNegative, f.b.create<arith::NegFOp>(f.loc, value), value);
  value = f.b.create<arith::MinimumFOp>(f.loc, value, f.constant(1));
  return f.b.create<arith::MaximumFOp>(f.loc, value, f.constant(-1));
}

/// `value`, or the result of the libm function `Op` where |x| is at least 2^40, because the number of quadrants is then
/// inexact by a large fraction of a quadrant. A vector without such elements calls nothing.
template <typename Op> static Value withLarge(const Formula &f, Value x, Value value) {
  Value isLarge = f.compare(arith::CmpFPredicate::OGE, f.abs(x), f.constant(0x1p40)), isAnyLarge = isLarge;
  if (isa<VectorType>(f.type))
    isAnyLarge = f.b.create<vector::ReductionOp>(f.loc, vector::CombiningKind::OR, isLarge);
  auto ofLarge = [&](OpBuilder &b, Location loc) {
    Value exact = b.create<arith::ExtFOp>(loc, f.like(b.getF64Type()), x);
    Value result = b.create<arith::TruncFOp>(loc, f.type, b.create<Op>(loc, exact));
    b.create<scf::YieldOp>(loc, Value(b.create<arith::SelectOp>(loc, isLarge, result, value)));
  };
  auto unchanged = [&](OpBuilder &b, Location loc) { b.create<scf::YieldOp>(loc, value); };
  return f.b.create<scf::IfOp>(f.loc, isAnyLarge, ofLarge, unchanged).getResult(0);
}

static Value sin(const Formula &f, Value x) {
  // Signed zeros: r is x, but r + 0 k would lose the sign.
  Value value = f.select(f.is(x, 0), x, sinOfQuadrant(f, x, 0));
  return withLarge<math::SinOp>(f, x, value);
}

static Value cos(const Formula &f, Value x) { return withLarge<math::CosOp>(f, x, sinOfQuadrant(f, x, 1)); }

//===- pow --------------------------------------------------------------------------------------------------------===//

// |x|^y as 2^(y log2 |x|) in double precision, which leaves one rounding to f32; then C's special cases.
static Value powOfMagnitude(const Formula &f, Value x, Value y) {
  Formula wide{f.b, f.loc, f.like(f.b.getF64Type())};
  constexpr double kHuge = 0x1p200; // bound of exponents: times any logarithm except 0, it exceeds all floats
  auto widened = [&](Value value) -> Value { return f.b.create<arith::ExtFOp>(f.loc, wide.type, value); };
  Value size = widened(f.abs(x)), exponent = widened(y);
  Value logarithm = wide.select(wide.is(size, 0), wide.constant(-INFINITY), log2(wide, size));
  logarithm = wide.select(wide.is(size, INFINITY), wide.constant(INFINITY), logarithm);
  Value power = wide.clamp(wide.mul(wide.clamp(exponent, kHuge), logarithm), 200);
  return f.b.create<arith::TruncFOp>(f.loc, f.type, exp2(wide, power));
}

static Value pow(const Formula &f, Value x, Value y) {
  auto both = [&](Value a, Value b) -> Value { return f.b.create<arith::AndIOp>(f.loc, a, b); };
  Value half = f.mul(y, f.constant(0.5)), nan = f.constant(NAN);
  Value isFraction = f.compare(arith::CmpFPredicate::ONE, f.floor(y), y);
  Value isOdd = both(f.compare(arith::CmpFPredicate::OEQ, f.floor(y), y),
                     f.compare(arith::CmpFPredicate::ONE, f.floor(half), half));
  Value isNegative = f.less(x, 0);
  Value isFinite = f.less(f.abs(x), INFINITY);

  Value result = powOfMagnitude(f, x, y);
  result = f.select(isOdd, f.withSign(result, x), result);
  result = f.select(both(both(isNegative, isFinite), isFraction), nan, result);
  result = f.select(f.compare(arith::CmpFPredicate::UNO, x, y), nan, result);
  return f.select(f.either(f.is(x, 1), f.is(y, 0)), f.constant(1), result);
}

namespace {

struct PowExpansion : OpRewritePattern<math::PowFOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(math::PowFOp op, PatternRewriter &rewriter) const override {
    if (!getElementTypeOrSelf(op.getType()).isF32())
      return failure();
    Formula f{rewriter, op.getLoc(), op.getType()};
    APFloat exponent(0.0f);
    bool isSquare = matchPattern(op.getRhs(), m_ConstantFloat(&exponent)) && exponent.convertToDouble() == 2;
    rewriter.replaceOp(op, isSquare ? f.mul(op.getLhs(), op.getLhs()) : pow(f, op.getLhs(), op.getRhs()));
    return success();
  }
};

} // namespace

void populateMathFunctionPatterns(RewritePatternSet &patterns) {
  MLIRContext *context = patterns.getContext();
  patterns.add<Expansion<math::ExpOp>>(context, exp);
  patterns.add<Expansion<math::ExpM1Op>>(context, expm1);
  patterns.add<Expansion<math::LogOp>>(context, log);
  patterns.add<Expansion<math::Log1pOp>>(context, log1p);
  patterns.add<Expansion<math::TanhOp>>(context, tanh);
  patterns.add<Expansion<math::ErfOp>>(context, erf);
  patterns.add<Expansion<math::SinOp>>(context, sin);
  patterns.add<Expansion<math::CosOp>>(context, cos);
  patterns.add<Expansion<math::AsinOp>>(context, asin);
  patterns.add<Expansion<math::AcosOp>>(context, acos);
  patterns.add<Expansion<math::AtanOp>>(context, atan);
  patterns.add<Expansion<math::SinhOp>>(context, sinh);
  patterns.add<Expansion<math::CoshOp>>(context, cosh);
  patterns.add<Expansion<math::AsinhOp>>(context, asinh);
  patterns.add<Expansion<math::AcoshOp>>(context, acosh);
  patterns.add<Expansion<math::AtanhOp>>(context, atanh);
  patterns.add<PowExpansion>(context, /*benefit=*/10);
}

bool isLongFunction(Operation *op) {
  // A constant exponent may allow a cheaper power.
  if (auto power = dyn_cast<math::PowFOp>(op))
    return !matchPattern(power.getRhs(), m_Constant());
  return isa<math::ExpOp, math::ExpM1Op, math::LogOp, math::Log1pOp, math::TanhOp, math::ErfOp, math::SinOp,
             math::CosOp, math::AsinOp, math::AcosOp, math::AtanOp, math::SinhOp, math::CoshOp, math::AsinhOp,
             math::AcoshOp, math::AtanhOp>(op);
}

/// A private function of the module that applies `op` to its arguments.
static func::FuncOp makeFunction(ModuleOp module, Operation *op, StringRef name) {
  OpBuilder b = OpBuilder::atBlockBegin(module.getBody());
  auto function =
      b.create<func::FuncOp>(op->getLoc(), name, b.getFunctionType(op->getOperandTypes(), op->getResultTypes()));
  function.setPrivate();
  function->setAttr("llvm.linkage", LLVM::LinkageAttr::get(module.getContext(), LLVM::Linkage::Internal));
  b.setInsertionPointToStart(function.addEntryBlock());
  Operation *inside = b.clone(*op);
  inside->removeAttr(kOutlinedAttr);
  inside->setOperands(function.getArguments());
  b.create<func::ReturnOp>(op->getLoc(), inside->getResults());
  return function;
}

void outlineMarkedFunctions(ModuleOp module) {
  SmallVector<Operation *> marked;
  module.walk([&](Operation *op) {
    if (op->hasAttr(kOutlinedAttr))
      marked.push_back(op);
  });
  llvm::StringMap<func::FuncOp> functions;
  for (Operation *op : marked) {
    std::string name;
    llvm::raw_string_ostream(name) << op->getName() << '.' << op->getResult(0).getType();
    func::FuncOp &function = functions[name];
    if (!function)
      function = makeFunction(module, op, name);
    auto call = OpBuilder(op).create<func::CallOp>(op->getLoc(), function, op->getOperands());
    op->replaceAllUsesWith(call.getResults());
    op->erase();
  }
}

} // namespace sluice::cpu
