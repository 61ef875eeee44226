// The evaluator's memory accesses and index values.
#include "backends/cpu/compiler/VectorAccess.h"
#include "backends/cpu/compiler/loops/Evaluator.h"
#include "ir/Layout.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace sluice::cpu {

using namespace mlir;
using ir::getLaneElement;

Type getMemoryElement(Type element) {
  return element.isInteger(1) ? IntegerType::get(element.getContext(), 8) : getLaneElement(element);
}

static unsigned alignmentOf(Type element) { return element.getIntOrFloatBitWidth() / 8; }

// Index values.

Value Evaluator::constantIndex64(int64_t value) { return builder_->create<arith::ConstantIntOp>(loc_, value, 64); }

Value Evaluator::extentValue(int64_t extent) { return extent == kRows ? stage.rows : constantIndex64(extent); }

Value Evaluator::splat(Value scalar) {
  return builder_->create<vector::BroadcastOp>(loc_, vectorOf(scalar.getType()), scalar);
}

Value Evaluator::allLanes() {
  return builder_->create<arith::ConstantOp>(loc_, DenseElementsAttr::get(vectorOf(builder_->getI1Type()), true));
}

bool Evaluator::usesLane(AffineExpr expr) const {
  bool found = false;
  forEachVariable(expr, [&](unsigned number) { found |= !variables[number].value; });
  return found;
}

Value Evaluator::uniformValue(const LinearIndex &index) {
  Value sum;
  auto add = [&](Value part) { sum = sum ? builder_->create<arith::AddIOp>(loc_, sum, part).getResult() : part; };
  for (const LinearIndex::Term &term : index.terms) {
    Value value;
    if (auto dim = dyn_cast<AffineDimExpr>(term.atom)) {
      value = variables[dim.getPosition()].value;
    } else {
      auto quotient = cast<AffineBinaryOpExpr>(term.atom);
      Value numerator = uniformValue(space.analyze(quotient.getLHS()));
      Value divisor = constantIndex64(cast<AffineConstantExpr>(quotient.getRHS()).getValue());
      if (space.range(quotient.getLHS()).low >= 0)
        value = builder_->create<arith::DivUIOp>(loc_, numerator, divisor);
      else
        value = builder_->create<arith::FloorDivSIOp>(loc_, numerator, divisor);
    }
    if (term.coefficient != 1)
      value = builder_->create<arith::MulIOp>(loc_, value, constantIndex64(term.coefficient));
    add(value);
  }
  if (index.constant != 0 || !sum)
    add(constantIndex64(index.constant));
  return sum;
}

Value Evaluator::indexValue(AffineExpr expr) { return uniformValue(space.analyze(expr)); }

static Value splatConstant(OpBuilder &b, Location loc, VectorType type, int64_t value) {
  auto element = cast<IntegerType>(type.getElementType());
  return b.create<arith::ConstantOp>(
      loc, DenseElementsAttr::get(type, Attribute(IntegerAttr::get(element, APInt(element.getWidth(), value, true)))));
}

Value Evaluator::laneValue(const LinearIndex &index, Type element) {
  VectorType type = vectorOf(element);
  LinearIndex uniform, varying;
  uniform.constant = index.constant;
  for (const LinearIndex::Term &term : index.terms)
    (usesLane(term.atom) ? varying : uniform).add(term.atom, term.coefficient);

  Value sum;
  auto add = [&](Value part) { sum = sum ? builder_->create<arith::AddIOp>(loc_, sum, part).getResult() : part; };
  for (const LinearIndex::Term &term : varying.terms) {
    Value value;
    if (isa<AffineDimExpr>(term.atom)) {
      SmallVector<Attribute> numbers;
      for (int64_t lane = 0; lane < lanes; ++lane)
        numbers.push_back(IntegerAttr::get(element, lane));
      value = builder_->create<arith::ConstantOp>(loc_, DenseElementsAttr::get(type, numbers));
    } else {
      auto quotient = cast<AffineBinaryOpExpr>(term.atom);
      Value numerator = laneValue(space.analyze(quotient.getLHS()), element);
      Value divisor = splatConstant(*builder_, loc_, type, cast<AffineConstantExpr>(quotient.getRHS()).getValue());
      if (space.range(quotient.getLHS()).low >= 0)
        value = builder_->create<arith::DivUIOp>(loc_, numerator, divisor);
      else
        value = builder_->create<arith::FloorDivSIOp>(loc_, numerator, divisor);
    }
    if (term.coefficient != 1)
      value = builder_->create<arith::MulIOp>(loc_, value, splatConstant(*builder_, loc_, type, term.coefficient));
    add(value);
  }
  if (!uniform.terms.empty()) {
    Value scalar = uniformValue(uniform);
    if (element.getIntOrFloatBitWidth() < 64)
      scalar = builder_->create<arith::TruncIOp>(loc_, element, scalar);
    add(splat(scalar));
  } else if (uniform.constant != 0 || !sum) {
    add(splatConstant(*builder_, loc_, type, uniform.constant));
  }
  return sum;
}

Value Evaluator::materialize(AffineExpr index, Type element) {
  Type wanted = getLaneElement(element);
  if (trial) {
    trial->used.push_back(index);
    trial->identity.push_back(space.normalize(index));
    return dummy(wanted);
  }
  LinearIndex linear = space.analyze(index);
  Type i64 = builder_->getI64Type();
  // Floordivs need all bits; sums and products may wrap in the wanted type.
  Interval range = space.range(linear);
  Type narrow = range.within(INT32_MIN, INT32_MAX) ? Type(builder_->getI32Type()) : i64;
  Value value = usesLane(space.toExpr(linear)) ? laneValue(linear, narrow) : splat(uniformValue(linear));
  unsigned from = cast<VectorType>(value.getType()).getElementTypeBitWidth(), to = wanted.getIntOrFloatBitWidth();
  if (from > to)
    return builder_->create<arith::TruncIOp>(loc_, vectorOf(wanted), value);
  if (from < to)
    return builder_->create<arith::ExtSIOp>(loc_, vectorOf(wanted), value);
  return value;
}

// Memory.

AffineExpr Evaluator::offsetOf(RankedTensorType type, ArrayRef<AffineExpr> index) {
  SmallVector<ir::PhysicalDim> dims = *ir::getPhysicalDims(type);
  SmallVector<int64_t> shape = ir::getPhysicalShape(type, capacity);
  AffineExpr offset = constantIndex(0);
  int64_t stride = 1;
  for (int64_t i = int64_t(dims.size()) - 1; i >= 0; --i) {
    AffineExpr logical = index[dims[i].logical];
    if (dims[i].kind == ir::PhysicalDim::Div)
      logical = logical.floorDiv(dims[i].tile);
    else if (dims[i].kind == ir::PhysicalDim::Mod)
      logical = logical % dims[i].tile;
    offset = offset + logical * stride;
    stride *= shape[i];
  }
  return space.normalize(offset);
}

bool Evaluator::isContiguous(AffineExpr offset) const {
  LoopScope *in = laneScope();
  if (!in)
    return false;
  LinearIndex index = space.analyze(offset);
  bool once = index.coefficientOf(in->lane) == 1;
  index.add(in->lane, -1);
  return once && !usesLane(space.toExpr(index));
}

Value Evaluator::address(const Memory &memory) {
  Value base = stage.buffer(memory.buffer);
  return elementAddress(*builder_, loc_, builder_->getI8Type(), base, memory.byteOffset);
}

Value Evaluator::load(const Memory &memory, AffineExpr offset) {
  return loadAt(memory.type.getElementType(), address(memory), offset);
}

Value Evaluator::loadAt(Type element, Value base, AffineExpr offset) {
  Type stored = getMemoryElement(element);
  VectorType type = vectorOf(stored);
  LinearIndex index = space.analyze(offset), uniform, varying;
  uniform.constant = index.constant;
  for (const LinearIndex::Term &term : index.terms)
    (usesLane(term.atom) ? varying : uniform).add(term.atom, term.coefficient);

  Mask guard = guardMask();
  Value result;
  if (varying.terms.empty()) {
    Value where = uniformValue(uniform);
    Value held = guard.uniform;
    if (guard.lanes) {
      Value any = builder_->create<vector::ReductionOp>(loc_, vector::CombiningKind::OR, toLanes(guard, true));
      held = any;
    }
    if (held)
      where = builder_->create<arith::SelectOp>(loc_, held, where, constantIndex64(0));
    result = loadBroadcast(*builder_, loc_, type, elementAddress(*builder_, loc_, stored, base, where));
  } else {
    Value mask = toLanes(guard, true);
    Value nothing = builder_->create<arith::ConstantOp>(loc_, builder_->getZeroAttr(type));
    if (isContiguous(offset)) {
      Value from = elementAddress(*builder_, loc_, stored, base, uniformValue(uniform));
      if (mask)
        result = builder_->create<LLVM::MaskedLoadOp>(loc_, type, from, mask, nothing, alignmentOf(stored));
      else
        result = loadVector(*builder_, loc_, type, from);
    } else {
      Value from = elementAddress(*builder_, loc_, stored, base, uniformValue(uniform));
      bool narrow = space.range(varying).within(INT32_MIN, INT32_MAX);
      Value offsets = laneValue(varying, narrow ? builder_->getI32Type() : builder_->getI64Type());
      Type pointers = LLVM::getFixedVectorType(from.getType(), lanes);
      Value addresses = builder_->create<LLVM::GEPOp>(loc_, pointers, stored, from, ArrayRef<LLVM::GEPArg>{offsets});
      result = builder_->create<LLVM::masked_gather>(loc_, type, addresses, mask ? mask : allLanes(), nothing,
                                                     alignmentOf(stored));
    }
  }
  if (element.isInteger(1)) {
    Value zero = builder_->create<arith::ConstantOp>(loc_, builder_->getZeroAttr(type));
    result = builder_->create<arith::CmpIOp>(loc_, arith::CmpIPredicate::ne, result, zero);
  }
  return result;
}

void Evaluator::store(const Memory &memory, AffineExpr offset, Value value) {
  Type stored = getMemoryElement(memory.type.getElementType());
  if (memory.type.getElementType().isInteger(1))
    value = builder_->create<arith::ExtUIOp>(loc_, vectorOf(stored), value);
  LinearIndex index = space.analyze(offset);
  LoopScope *in = laneScope();
  // A single lane, which is number 0, may go along anything.
  bool single = cast<VectorType>(value.getType()).getNumElements() == 1;
  int64_t step = in ? index.coefficientOf(in->lane) : 0;
  if (!in || (single && step != 1)) {
    if (step != 0)
      index.add(in->lane, -step);
    Value to = elementAddress(*builder_, loc_, stored, address(memory), uniformValue(index));
    Value first = builder_->create<vector::ExtractOp>(loc_, value, ArrayRef<int64_t>{0});
    builder_->create<LLVM::StoreOp>(loc_, first, to, alignmentOf(stored));
    return;
  }
  assert(index.coefficientOf(in->lane) == 1 && "results are stored in the order of their memory");
  index.add(in->lane, -1);
  Value to = elementAddress(*builder_, loc_, stored, address(memory), uniformValue(index));
  if (in->tail)
    builder_->create<LLVM::MaskedStoreOp>(loc_, value, to, in->tail, alignmentOf(stored));
  else
    storeVector(*builder_, loc_, value, to);
}

} // namespace sluice::cpu
