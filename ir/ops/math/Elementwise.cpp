// Elementwise ops, whose semantics are in Elementwise.td, and the definitions generated for all ops. The snippets in
// the table use Lane, Node and the functions here.
#include "ir/Dialect.h"
#include "ir/build/Lane.h"
#include "ir/build/Node.h"
#include "ir/ops/Inference.h"
#include "ir/text/Sizes.h"
#include "ir/text/Words.h"
#include <cmath>
#include <limits>

using namespace mlir;

namespace sluice::ir {

// Unlike std::fmax and std::fmin these are NaN where an operand is, as the bodies are.
static double larger(double a, double b) { return std::isnan(a) || a > b ? a : b; }
static double smaller(double a, double b) { return std::isnan(a) || a < b ? a : b; }

static double divide(double a, double b, Value y) {
  if (isa<FloatType>(elementOf(y)))
    return a / b;
  return b == 0 ? 0 : std::trunc(a / b);
}

/// Computed with C's fmod, which is exact. The remainder of an integer by 0 is the integer.
static double remainder(double a, double b, Value y) {
  if (isa<IntegerType>(elementOf(y)) && b == 0)
    return a;
  double rest = std::fmod(a, b);
  return (b < 0 ? rest > 0 : rest < 0) ? rest + b : rest;
}

static double invert(double a, Value of) {
  return elementOf(of).isInteger(1) ? a == 0 : roundTo(elementOf(of), double(~int64_t(a)));
}

/// Whether b is a valid shift count.
static bool isBelowWidth(double b, Value y) { return b >= 0 && b < elementOf(y).getIntOrFloatBitWidth(); }

static double shiftLeft(double a, double b, Value y) {
  return isBelowWidth(b, y) ? roundTo(elementOf(y), double(int64_t(uint64_t(int64_t(a)) << int64_t(b)))) : 0;
}

static double shiftRight(double a, double b, Value y) {
  if (!isBelowWidth(b, y))
    return a < 0 ? -1 : 0;
  return double(int64_t(a) >> int64_t(b));
}

/// floor(a / b), where y is the remainder: (a - y) / b, rounded to an integer. The floor of a rounded a / b could be
/// too large by 1. The quotient by infinity is 0, or -1 if the signs differ.
static Node floorOfQuotient(Node a, Node b, Node y) {
  Node quotient = round((a - y) / b);
  return where(abs(b) == HUGE_VAL, where(y == a, y.like(0.0), -1.0), quotient);
}

template <typename Op>
static SmallVector<HostTensor> evaluateElementwise(Op op, ArrayRef<HostTensor> operands, int64_t rows) {
  HostTensor result(runtimeShape(op->getResult(0).getType(), rows));
  SmallVector<double> elements(operands.size());
  for (size_t i = 0; i < result.data.size(); ++i) {
    for (auto [element, operand] : llvm::zip_equal(elements, operands))
      element = operand.data[i];
    result.data[i] = op.evaluateElement(elements);
  }
  return {result};
}

//===- clip ------------------------------------------------------------------------------------------------------===//

using Bound = std::optional<APFloat>;

static double clip(double a, const Bound &low, const Bound &high) {
  double raised = low ? larger(a, low->convertToDouble()) : a;
  return high ? smaller(raised, high->convertToDouble()) : raised;
}

static Lane clip(Lane a, const Bound &low, const Bound &high) {
  Lane raised = low ? max(a, low->convertToDouble()) : a;
  return high ? min(raised, high->convertToDouble()) : raised;
}

static Node clipGradient(Node a, Node dY, const Bound &low, const Bound &high) {
  Node above = low ? where(a > low->convertToDouble(), dY, 0.0) : dY;
  return high ? where(a < high->convertToDouble(), above, 0.0) : above;
}

/// Bounds of integers are values of their type.
LogicalResult ClipOp::verify() {
  Type element = elementOf(getA());
  for (const Bound &bound : {getMin(), getMax()}) {
    double number = bound ? bound->convertToDouble() : 0;
    if (isa<IntegerType>(element) &&
        !(std::fabs(number) <= 0x1p53 && roundTo(element, number) == number && std::trunc(number) == number))
      return emitOpError("the bound ") << number << " is no value of " << element;
  }
  return success();
}

//===- ignore_index ----------------------------------------------------------------------------------------------===//

LogicalResult IgnoreIndexOp::verify() {
  if (!llvm::isInt<32>(getIgnored()))
    return emitOpError("the ignored index ") << getIgnored() << " is none of 32 bits";
  return checkNumbers(getLoc(), "size", int64_t(getSize()), 1, 1);
}

SmallVector<int64_t> IgnoreIndexOp::getIndexBounds() { return {int64_t(getSize())}; }

std::optional<int64_t> IgnoreIndexOp::getIgnoredIndex() { return getIgnored(); }

static bool isUnsigned(Value value) { return elementOf(value).isUnsignedInteger(); }

//===- compare ---------------------------------------------------------------------------------------------------===//

LogicalResult CompareOp::inferReturnTypes(MLIRContext *context, MaybeLocation loc, ValueRange operands, DictionaryAttr,
                                          OpaqueProperties, RegionRange, SmallVectorImpl<Type> &types) {
  if (failed(inferBinary(loc, operands, types)))
    return failure();
  types[0] = withElement(withoutEncoding(types[0]), IntegerType::get(context, 1));
  return success();
}

double CompareOp::evaluateElement(ArrayRef<double> in) {
  double a = in[0], b = in[1];
  switch (getPredicate()) {
  case Predicate::eq:
    return a == b;
  case Predicate::ne:
    return a != b;
  case Predicate::lt:
    return a < b;
  case Predicate::le:
    return a <= b;
  case Predicate::gt:
    return a > b;
  case Predicate::ge:
    return a >= b;
  }
  llvm_unreachable("a predicate that the enumeration does not have");
}

Value CompareOp::buildBody(OpBuilder &builder, Location loc, ValueRange in) {
  Lane a(builder, loc, in[0]), b(builder, loc, in[1]);
  switch (getPredicate()) {
  case Predicate::eq:
    return a == b;
  case Predicate::ne:
    return a != b;
  case Predicate::lt:
    return a < b;
  case Predicate::le:
    return a <= b;
  case Predicate::gt:
    return a > b;
  case Predicate::ge:
    return a >= b;
  }
  llvm_unreachable("a predicate that the enumeration does not have");
}

SmallVector<HostTensor> CompareOp::evaluate(ArrayRef<HostTensor> operands, int64_t rows) {
  return evaluateElementwise(*this, operands, rows);
}

//===- where -----------------------------------------------------------------------------------------------------===//

LogicalResult WhereOp::inferReturnTypes(MLIRContext *, MaybeLocation loc, ValueRange operands, DictionaryAttr,
                                        OpaqueProperties, RegionRange, SmallVectorImpl<Type> &types) {
  if (shapeOf(operands[0]) != shapeOf(operands[1]))
    return inferenceFailure(loc, "the condition's shape differs: ", printShape(shapeOf(operands[0])), " and ",
                            printShape(shapeOf(operands[1])));
  return inferBinary(loc, operands.drop_front(), types);
}

double WhereOp::evaluateElement(ArrayRef<double> in) { return in[0] != 0 ? in[1] : in[2]; }

Value WhereOp::buildBody(OpBuilder &builder, Location loc, ValueRange in) {
  return where(Lane(builder, loc, in[0]), Lane(builder, loc, in[1]), Lane(builder, loc, in[2]));
}

SmallVector<HostTensor> WhereOp::evaluate(ArrayRef<HostTensor> operands, int64_t rows) {
  return evaluateElementwise(*this, operands, rows);
}

SmallVector<Value> WhereOp::buildGradient(OpBuilder &builder, ValueRange dResults) {
  Node condition(builder, getLoc(), getCondition()), dY(builder, getLoc(), dResults[0]);
  return {Value(), where(condition, dY, 0.0), where(condition, 0.0, dY)};
}

SmallVector<Sample> WhereOp::samples() {
  return {{"\"sluice.where\"(%0, %1, %2) : (tensor<3x5xi1>, tensor<3x5xf64>, tensor<3x5xf64>) -> tensor<3x5xf64>",
           {{0, 2}, {-2, 2}, {-2, 2}}}};
}

//===- cast ------------------------------------------------------------------------------------------------------===//

LogicalResult CastOp::inferReturnTypes(MLIRContext *, MaybeLocation loc, ValueRange operands, DictionaryAttr attributes,
                                       OpaqueProperties properties, RegionRange, SmallVectorImpl<Type> &types) {
  Type to = Adaptor(operands, attributes, properties).getTo();
  if (failed(checkElement(loc, to)))
    return failure();
  types.push_back(withElement(withoutEncoding(operands[0].getType()), to));
  return success();
}

/// `value` as the nearest number of an integer type, rounded towards zero.
static double saturateTo(IntegerType type, double value) {
  if (std::isnan(value))
    return 0;
  int bits = int(type.getWidth()) - (type.isUnsigned() ? 0 : 1);
  double least = type.isUnsigned() ? 0 : -std::ldexp(1.0, bits), most = std::ldexp(1.0, bits) - 1;
  return std::trunc(std::clamp(value, least, most));
}

double CastOp::evaluateElement(ArrayRef<double> in) {
  auto to = dyn_cast<IntegerType>(getTo());
  if (to && to.getWidth() == 1)
    return in[0] != 0;
  if (to && isa<FloatType>(elementOf(getA())))
    return saturateTo(to, in[0]);
  return roundTo(isa<FloatType>(getTo()) ? Float64Type::get(getContext()) : getTo(), in[0]);
}

Value CastOp::buildBody(OpBuilder &builder, Location loc, ValueRange in) {
  return castTo(Lane(builder, loc, in[0]), getTo(), isUnsigned(getA()), getTo().isUnsignedInteger());
}

//===- linearity -------------------------------------------------------------------------------------------------===//

bool AddOp::isLinearIn(ArrayRef<bool> sums) { return sums[0] && sums[1]; }
bool SubOp::isLinearIn(ArrayRef<bool> sums) { return sums[0] && sums[1]; }
bool NegOp::isLinearIn(ArrayRef<bool>) { return true; }
bool MulOp::isLinearIn(ArrayRef<bool> sums) { return sums[0] != sums[1]; }
bool DivOp::isLinearIn(ArrayRef<bool> sums) { return sums[0] && !sums[1] && isa<FloatType>(elementOf(getY())); }

//===- cast ------------------------------------------------------------------------------------------------------===//

/// Whether type `wide` can represent every element of type `narrow`.
static bool holdsAll(Type wide, Type narrow) {
  if (!isa<FloatType>(wide) || !isa<FloatType>(narrow))
    return false;
  const llvm::fltSemantics &to = cast<FloatType>(wide).getFloatSemantics(),
                           &from = cast<FloatType>(narrow).getFloatSemantics();
  return APFloat::semanticsPrecision(to) >= APFloat::semanticsPrecision(from) &&
         APFloat::semanticsMaxExponent(to) >= APFloat::semanticsMaxExponent(from) &&
         APFloat::semanticsMinExponent(to) <= APFloat::semanticsMinExponent(from);
}

/// A cast to the operand's own type, or back from a type that represents all its elements, is the identity.
OpFoldResult CastOp::fold(FoldAdaptor) {
  if (getA().getType() == getY().getType())
    return getA();
  auto first = getA().getDefiningOp<CastOp>();
  if (first && first.getA().getType() == getY().getType() && holdsAll(elementOf(getA()), getTo()))
    return first.getA();
  return nullptr;
}

SmallVector<HostTensor> CastOp::evaluate(ArrayRef<HostTensor> operands, int64_t rows) {
  return evaluateElementwise(*this, operands, rows);
}

SmallVector<Value> CastOp::buildGradient(OpBuilder &builder, ValueRange dResults) {
  if (!isa<FloatType>(elementOf(getA())) || !isa<FloatType>(getTo()))
    return {Value()};
  return {builder.create<CastOp>(getLoc(), dResults[0], elementOf(getA()))};
}

/// A valid index is unchanged in another integer type.
Value CastOp::getElementsSource() {
  return isa<IntegerType>(elementOf(getA())) && isa<IntegerType>(getTo()) ? getA() : Value();
}

bool CastOp::isLinearIn(ArrayRef<bool>) { return holdsAll(getTo(), elementOf(getA())); }

SmallVector<Sample> CastOp::samples() {
  return {{"\"sluice.cast\"(%0) {to = f64} : (tensor<3x5xf64>) -> tensor<3x5xf64>", {{-2, 2}}}};
}

} // namespace sluice::ir

#define GET_OP_CLASSES
#include "ir/Ops.cpp.inc"
