// The lane emitter's counts, index values and conditions.
#include "backends/cpu/compiler/loops/LaneEmitter.h"
#include "ir/build/Lane.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace sluice::cpu {

using namespace mlir;
using namespace loops;

Count LaneEmitter::constant(int64_t value) { return handleOf<Count>(make<arith::ConstantIntOp>(value, 64)); }

Count LaneEmitter::arithmetic(CountOp op, Count first, Count second) {
  Value a = valueOf(first), b = valueOf(second);
  auto made = [&]() -> Value {
    switch (op) {
    case CountOp::Add:
      return make<arith::AddIOp>(a, b);
    case CountOp::Sub:
      return make<arith::SubIOp>(a, b);
    case CountOp::Mul:
      return make<arith::MulIOp>(a, b);
    case CountOp::Div:
      return make<arith::DivUIOp>(a, b);
    case CountOp::CeilDiv:
      return make<arith::CeilDivSIOp>(a, b);
    case CountOp::Rem:
      return make<arith::RemUIOp>(a, b);
    case CountOp::Min:
      return make<arith::MinSIOp>(a, b);
    case CountOp::Max:
      return make<arith::MaxSIOp>(a, b);
    }
    llvm_unreachable("an unknown op on counts");
  };
  return handleOf<Count>(made());
}

Value LaneEmitter::splat(Value scalar) { return make<vector::BroadcastOp>(vectorOf(scalar.getType()), scalar); }

Value LaneEmitter::allLanes() { return constantOf(DenseElementsAttr::get(vectorOf(b.getI1Type()), true)); }

Value LaneEmitter::splatConstant(Type element, int64_t value) {
  auto number = IntegerAttr::get(element, APInt(element.getIntOrFloatBitWidth(), value, true));
  return constantOf(DenseElementsAttr::get(vectorOf(element), Attribute(number)));
}

// floor(dividend / divisor), where `numerator` is the dividend.
Value LaneEmitter::quotient(AffineExpr numerator, Value dividend, Value divisor) {
  if (space().range(numerator).low >= 0)
    return make<arith::DivUIOp>(dividend, divisor);
  return make<arith::FloorDivSIOp>(dividend, divisor);
}

Value LaneEmitter::uniformValue(const LinearIndex &index) {
  Value sum;
  auto add = [&](Value part) { sum = sum ? make<arith::AddIOp>(sum, part) : part; };
  for (const LinearIndex::Term &term : index.terms) {
    Value value;
    if (isa<AffineDimExpr>(term.atom)) {
      value = valueOf(space().valueOf(term.atom));
    } else {
      auto division = cast<AffineBinaryOpExpr>(term.atom);
      Value numerator = uniformValue(space().analyze(division.getLHS()));
      Value divisor = valueOf(constant(cast<AffineConstantExpr>(division.getRHS()).getValue()));
      value = quotient(division.getLHS(), numerator, divisor);
    }
    if (term.coefficient != 1)
      value = make<arith::MulIOp>(value, valueOf(constant(term.coefficient)));
    add(value);
  }
  if (index.constant != 0 || !sum)
    add(valueOf(constant(index.constant)));
  return sum;
}

Count LaneEmitter::count(AffineExpr index) { return handleOf<Count>(uniformValue(space().analyze(index))); }

Count LaneEmitter::count(Element integer) {
  Value first = make<vector::ExtractOp>(valueOf(integer), ArrayRef<int64_t>{0});
  return handleOf<Count>(first.getType().isInteger(64) ? first : make<arith::ExtSIOp>(b.getI64Type(), first));
}

Element LaneEmitter::clamp(Element integer, int64_t size) {
  Type type = cast<VectorType>(valueOf(integer).getType()).getElementType();
  int64_t last = std::min(size - 1, llvm::maxIntN(type.getIntOrFloatBitWidth()));
  Value notNegative = make<arith::MaxSIOp>(valueOf(integer), splatConstant(type, 0));
  return handleOf<Element>(make<arith::MinSIOp>(notNegative, splatConstant(type, last)));
}

Value LaneEmitter::resized(Value integers, Type element) {
  unsigned from = cast<VectorType>(integers.getType()).getElementTypeBitWidth(), to = element.getIntOrFloatBitWidth();
  if (from == to)
    return integers;
  return from > to ? make<arith::TruncIOp>(vectorOf(element), integers)
                   : make<arith::ExtSIOp>(vectorOf(element), integers);
}

/// The values of a variable in all lanes: lane numbers, or the elements of a data variable.
Value LaneEmitter::variableOfLanes(AffineExpr variable, Type element) {
  if (Element data = space().elementOf(variable))
    return resized(valueOf(data), element);
  SmallVector<Attribute> numbers;
  for (int64_t lane = 0; lane < lanes_; ++lane)
    numbers.push_back(IntegerAttr::get(element, lane));
  return constantOf(DenseElementsAttr::get(vectorOf(element), numbers));
}

Value LaneEmitter::laneValue(const LinearIndex &index, Type element) {
  LinearIndex uniform, varying;
  uniform.constant = index.constant;
  for (const LinearIndex::Term &term : index.terms)
    (space().usesLane(term.atom) ? varying : uniform).add(term.atom, term.coefficient);

  Value sum;
  auto add = [&](Value part) { sum = sum ? make<arith::AddIOp>(sum, part) : part; };
  for (const LinearIndex::Term &term : varying.terms) {
    Value value;
    if (isa<AffineDimExpr>(term.atom)) {
      value = variableOfLanes(term.atom, element);
    } else {
      auto division = cast<AffineBinaryOpExpr>(term.atom);
      Value numerator = laneValue(space().analyze(division.getLHS()), element);
      Value divisor = splatConstant(element, cast<AffineConstantExpr>(division.getRHS()).getValue());
      value = quotient(division.getLHS(), numerator, divisor);
    }
    if (term.coefficient != 1)
      value = make<arith::MulIOp>(value, splatConstant(element, term.coefficient));
    add(value);
  }
  if (!uniform.terms.empty()) {
    Value scalar = uniformValue(uniform);
    if (element.getIntOrFloatBitWidth() < 64)
      scalar = make<arith::TruncIOp>(element, scalar);
    add(splat(scalar));
  } else if (uniform.constant != 0 || !sum) {
    add(splatConstant(element, uniform.constant));
  }
  return sum;
}

Element LaneEmitter::index(AffineExpr index, Type wanted) {
  LinearIndex linear = space().analyze(index);
  // Floordivs need all bits; sums and products may wrap in the result type.
  Interval range = space().range(linear);
  Type narrow = range.within(INT32_MIN, INT32_MAX) ? b.getI32Type() : b.getI64Type();
  Value value = space().usesLane(space().toExpr(linear)) ? laneValue(linear, narrow) : splat(uniformValue(linear));
  return handleOf<Element>(resized(value, wanted));
}

// Conditions.

Condition LaneEmitter::isEqual(Count count, int64_t value) {
  return conditionOf(make<arith::CmpIOp>(arith::CmpIPredicate::eq, valueOf(count), valueOf(constant(value))));
}

Condition LaneEmitter::isNonNegative(AffineExpr expr) {
  LinearIndex index = space().analyze(expr);
  Value value = space().usesLane(expr) ? laneValue(index, b.getI32Type()) : uniformValue(index);
  Value zero = make<arith::ConstantOp>(b.getZeroAttr(value.getType()));
  return conditionOf(make<arith::CmpIOp>(arith::CmpIPredicate::sge, value, zero));
}

Condition LaneEmitter::firstLanes(AffineExpr lane, Count count) {
  Value clamped = make<arith::MinSIOp>(valueOf(count), valueOf(constant(lanes_)));
  Value limit = splat(make<arith::TruncIOp>(b.getI32Type(), clamped));
  LinearIndex number;
  number.add(lane, 1);
  Value numbers = laneValue(number, b.getI32Type());
  return conditionOf(make<arith::CmpIOp>(arith::CmpIPredicate::slt, numbers, limit));
}

Condition LaneEmitter::firstLanes(int64_t count) {
  SmallVector<bool> bits(lanes_, false);
  std::fill_n(bits.begin(), count, true);
  return conditionOf(constantOf(DenseElementsAttr::get(vectorOf(b.getI1Type()), ArrayRef<bool>(bits))));
}

Condition LaneEmitter::conditionOf(Value held) {
  return Condition(&masks.emplace_back(isa<VectorType>(held.getType()) ? Mask{nullptr, held} : Mask{held, nullptr}));
}

LaneEmitter::Mask LaneEmitter::maskOf(Condition condition) const {
  return condition ? *static_cast<const Mask *>(condition.get()) : Mask();
}

Condition LaneEmitter::both(Condition first, Condition second) {
  Mask all = maskOf(first), other = maskOf(second);
  auto conjoin = [&](Value &held, Value one) {
    if (one)
      held = held ? make<arith::AndIOp>(held, one) : one;
  };
  conjoin(all.uniform, other.uniform);
  conjoin(all.lanes, other.lanes);
  return Condition(&masks.emplace_back(all));
}

Value LaneEmitter::toLanes(Mask mask, Condition exists) {
  Value result = mask.lanes;
  auto conjoin = [&](Value one) { result = result ? make<arith::AndIOp>(result, one) : one; };
  if (mask.uniform)
    conjoin(splat(mask.uniform));
  if (exists)
    conjoin(maskOf(exists).lanes);
  return result;
}

Element LaneEmitter::select(Condition condition, Element then, Element otherwise) {
  Mask mask = maskOf(condition);
  Value held = mask.lanes ? toLanes(mask, {}) : mask.uniform;
  return handleOf<Element>(make<arith::SelectOp>(held, valueOf(then), valueOf(otherwise)));
}

} // namespace sluice::cpu
