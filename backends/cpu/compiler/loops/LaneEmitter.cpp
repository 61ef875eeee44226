#include "backends/cpu/compiler/loops/LaneEmitter.h"

#include "backends/cpu/compiler/llvm/MathFunctions.h"
#include "backends/cpu/compiler/loops/ConstantData.h"
#include "backends/cpu/compiler/machine/Halves.h"
#include "backends/cpu/compiler/machine/VectorAccess.h"
#include "ir/build/Lane.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace sluice::cpu {

using namespace mlir;
using namespace loops;

static OpBuilder::InsertPoint beforeOp(Operation *op) { return {op->getBlock(), Block::iterator(op)}; }

LaneEmitter::LaneEmitter(OpBuilder &builder, Location loc, StageFunction &stage, int64_t lanes, int64_t partials,
                         Surroundings surroundings)
    : Emitter(builder.getContext()), b(builder), loc(loc), stage(stage), lanes_(lanes), partials_(partials),
      outermost(builder.getInsertionBlock()) {
  Block *entry = &stage.func.getBody().front();
  if (surroundings == Surroundings::Ignored || outermost == entry)
    return;
  Operation *tasks = outermost->getParentOp();
  assert(tasks->getBlock() == entry && "one loop, that over tasks, may be around the insertion point");
  around.push_back({tasks, beforeOp(tasks)});
  outermost = entry;
}

// Loops.

static SmallVector<Value> valuesOf(ArrayRef<Element> elements) {
  return llvm::map_to_vector(elements, [](Element element) { return LaneEmitter::valueOf(element); });
}

static SmallVector<Element> elementsOf(ValueRange values) {
  return llvm::map_to_vector(values, [](Value value) { return LaneEmitter::handleOf<Element>(value); });
}

// An op with carried values has no terminator yet: `end` creates it, when the next values are known.
void LaneEmitter::open(Operation *op, Block *inside, bool carries) {
  around.push_back({op, beforeOp(op)});
  if (carries)
    b.setInsertionPointToEnd(inside);
  else
    b.setInsertionPoint(inside->getTerminator());
}

Emitter::Inside LaneEmitter::beginLoop(Count begin, Count end, int64_t step, int64_t trips, ArrayRef<Element> carried) {
  auto loop = b.create<scf::ForOp>(loc, valueOf(begin), valueOf(end), valueOf(constant(step)), valuesOf(carried));
  loop->setAttr(kTripsAttr, b.getI64IntegerAttr(trips));
  open(loop, loop.getBody(), !carried.empty());
  return {handleOf<Count>(loop.getInductionVar()), elementsOf(loop.getRegionIterArgs())};
}

void LaneEmitter::beginBlock(Condition condition, ArrayRef<Element> carried) {
  Value held = condition ? maskOf(condition).uniform : make<arith::ConstantIntOp>(1, 1);
  SmallVector<Value> values = valuesOf(carried);
  auto branch = b.create<scf::IfOp>(loc, TypeRange(ValueRange(values)), held, /*withElseRegion=*/!carried.empty());
  if (!carried.empty())
    OpBuilder::atBlockEnd(branch.elseBlock()).create<scf::YieldOp>(loc, values);
  open(branch, branch.thenBlock(), !carried.empty());
}

SmallVector<Element> LaneEmitter::end(ArrayRef<Element> next) {
  Operation *op = around.pop_back_val().op;
  if (!next.empty())
    b.create<scf::YieldOp>(loc, valuesOf(next));
  b.setInsertionPointAfter(op);
  return elementsOf(op->getResults());
}

void LaneEmitter::enter(unsigned depth) {
  left.push_back({around, b.saveInsertionPoint()});
  b.restoreInsertionPoint(around[depth].before);
  around.resize(depth);
}

void LaneEmitter::leave() {
  Left back = left.pop_back_val();
  around = back.around;
  b.restoreInsertionPoint(back.place);
}

// Elements.

// Emitted once, at the beginning: in machine code, constants are operands of their consumers.
Value LaneEmitter::constantOf(TypedAttr vector) {
  Value &known = constants[vector];
  if (known)
    return known;
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(outermost);
  return known = make<arith::ConstantOp>(vector);
}

Element LaneEmitter::constant(TypedAttr number) {
  return handleOf<Element>(constantOf(DenseElementsAttr::get(vectorOf(number.getType()), Attribute(number))));
}

Element LaneEmitter::rows(Type type) {
  Value rows = stage.rows;
  if (isa<FloatType>(type))
    rows = make<arith::SIToFPOp>(type, rows);
  else if (type.getIntOrFloatBitWidth() < 64)
    rows = make<arith::TruncIOp>(type, rows);
  return handleOf<Element>(splat(rows));
}

Element LaneEmitter::apply(Operation *op, ArrayRef<Element> operands) {
  if (Type to = op->getResult(0).getType(); isa<arith::TruncFOp>(op) && ir::isHalf(to))
    return handleOf<Element>(roundToHalf(b, loc, valueOf(operands[0]), to));
  if (isa<arith::ExtFOp>(op) && ir::isHalf(op->getOperand(0).getType()))
    return operands[0];
  Operation *made = Operation::create(loc, op->getName(), vectorOf(op->getResult(0).getType()), valuesOf(operands),
                                      op->getDiscardableAttrDictionary(), op->getPropertiesStorage(), BlockRange(), 0);
  b.insert(made);
  if (isLongFunction(made))
    noteLongFunction(made);
  return handleOf<Element>(made->getResult(0));
}

/// If a kernel applies one function many times, calls replace its copies. LLVM's time grows faster than the size of a
/// block, and an epilogue is emitted for each vector of a tile. Losses and norms of real networks have up to a dozen,
/// which stay inline.
void LaneEmitter::noteLongFunction(Operation *op) {
  constexpr size_t kMostInline = 16;
  SmallVector<Operation *> &same = longFunctions[op->getName()];
  same.push_back(op);
  if (same.size() <= kMostInline)
    return;
  // The first ones are marked once their limit is exceeded.
  for (Operation *one : same.size() == kMostInline + 1 ? ArrayRef(same) : ArrayRef(op))
    one->setAttr(kOutlinedAttr, b.getUnitAttr());
}

/// At the beginning of the module; parts that are compiled separately get a copy (Codegen.cpp).
func::FuncOp LaneEmitter::makeFunction(StringRef symbol, TypeRange arguments, FunctionBody body) {
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(stage.func->getParentOfType<ModuleOp>().getBody());
  auto function = b.create<func::FuncOp>(loc, symbol, b.getFunctionType(arguments, {}));
  function.setPrivate();
  b.setInsertionPointToStart(function.addEntryBlock());
  LaneEmitter inside(b, loc, stage, lanes_, partials_, Surroundings::Ignored);
  SmallVector<Value> results = valuesOf(body(inside, elementsOf(function.getArguments())));
  b.create<func::ReturnOp>(loc, results);
  function.setType(b.getFunctionType(arguments, TypeRange(ValueRange(results))));
  return function;
}

std::optional<SmallVector<Element>> LaneEmitter::call(StringRef name, ArrayRef<Element> operands, FunctionBody body) {
  SmallVector<Value> values = valuesOf(operands);
  assert(llvm::all_equal(TypeRange(ValueRange(values))));
  std::string symbol;
  llvm::raw_string_ostream(symbol) << name << '.' << lanes_ << 'x' << getElementTypeOrSelf(values[0]);
  auto function = stage.func->getParentOfType<ModuleOp>().lookupSymbol<func::FuncOp>(symbol);
  if (!function)
    function = makeFunction(symbol, TypeRange(ValueRange(values)), body);
  return elementsOf(b.create<func::CallOp>(loc, function, values).getResults());
}

// Memory.

Type getMemoryElement(Type element) {
  if (element.isInteger(1))
    return IntegerType::get(element.getContext(), 8);
  return ir::isHalf(element) ? typeInMemory(element) : ir::getLaneElement(element);
}

static unsigned alignmentOf(Type element) { return element.getIntOrFloatBitWidth() / 8; }

Value LaneEmitter::address(const Memory &memory) {
  return elementAddress(b, loc, b.getI8Type(), stage.buffer(memory.buffer), memory.byteOffset);
}

Element LaneEmitter::load(const Memory &memory, AffineExpr offset, const Lanes &lanes, Condition condition) {
  return handleOf<Element>(loadAt(memory.type, address(memory), offset, lanes, condition));
}

Element LaneEmitter::load(DenseElementsAttr constant, AffineExpr offset, const Lanes &lanes, Condition condition) {
  Value base = addressOfConstant(b, loc, stage.func->getParentOfType<ModuleOp>(), constant);
  return handleOf<Element>(loadAt(constant.getType(), base, offset, lanes, condition));
}

void LaneEmitter::splitByLanes(AffineExpr offset, LinearIndex &uniform, LinearIndex &varying) {
  LinearIndex index = space().analyze(offset);
  uniform.constant = index.constant;
  for (const LinearIndex::Term &term : index.terms)
    (space().usesLane(term.atom) ? varying : uniform).add(term.atom, term.coefficient);
}

// The offset, or that of the first element if no lane is active. A masked load without active lanes at an unmapped
// address takes hundreds of cycles, and an ordinary load would fail.
Value LaneEmitter::orFirst(Value where, Value held) {
  return held ? make<arith::SelectOp>(held, where, valueOf(constant(0))) : where;
}

// Loads one element for all lanes.
Value LaneEmitter::loadUniform(Type stored, Value base, Value where, Mask guard, Condition exists) {
  Value held = guard.uniform;
  if (guard.lanes)
    held = make<vector::ReductionOp>(vector::CombiningKind::OR, toLanes(guard, exists));
  return loadBroadcast(b, loc, vectorOf(stored), elementAddress(b, loc, stored, base, orFirst(where, held)));
}

// The distance of the lanes if it is the same between all of them, and they are few enough for an instruction each.
std::optional<int64_t> LaneEmitter::strideOf(const LinearIndex &varying, const Lanes &lanes) const {
  constexpr int64_t kMostLanes = 16;
  if (lanes_ > kMostLanes || varying.terms.size() != 1 || varying.terms[0].atom != lanes.variable)
    return std::nullopt;
  return varying.terms[0].coefficient;
}

Value LaneEmitter::addresses(Type stored, Value from, const LinearIndex &varying) {
  bool narrow = space().range(varying).within(INT32_MIN, INT32_MAX);
  Value offsets = laneValue(varying, narrow ? b.getI32Type() : b.getI64Type());
  Type pointers = LLVM::getFixedVectorType(from.getType(), lanes_);
  return make<LLVM::GEPOp>(pointers, stored, from, ArrayRef<LLVM::GEPArg>{offsets});
}

/// Whether the first `lanes` elements of a tensor exist.
static bool hasFirst(ShapedType tensor, int64_t lanes) {
  int64_t elements = 1; // with one row
  for (int64_t size : tensor.getShape())
    elements *= ShapedType::isDynamic(size) ? 1 : size;
  return elements >= lanes;
}

Value LaneEmitter::loadAt(ShapedType tensor, Value base, AffineExpr offset, const Lanes &lanes, Condition condition) {
  Type element = tensor.getElementType(), stored = getMemoryElement(element);
  VectorType type = vectorOf(stored);
  LinearIndex uniform, varying;
  splitByLanes(offset, uniform, varying);
  Mask guard = maskOf(condition);
  Value result;
  if (varying.terms.empty()) {
    result = loadUniform(stored, base, uniformValue(uniform), guard, lanes.exists);
  } else {
    Value mask = toLanes(guard, lanes.exists), nothing = constantOf(b.getZeroAttr(type));
    Value from = elementAddress(b, loc, stored, base, orFirst(uniformValue(uniform), guard.uniform));
    if (!space().isContiguous(offset, lanes.variable)) {
      result = make<LLVM::masked_gather>(type, addresses(stored, from, varying), mask ? mask : allLanes(), nothing,
                                         alignmentOf(stored));
    } else if (mask && !guard.lanes && !maskOf(lanes.exists).lanes && hasFirst(tensor, lanes_)) {
      // All lanes or none: AVX2 has no masked loads of small elements.
      result = make<arith::SelectOp>(guard.uniform, loadVector(b, loc, type, from), nothing);
    } else if (mask) {
      result = make<LLVM::MaskedLoadOp>(type, from, mask, nothing, alignmentOf(stored));
    } else {
      result = loadVector(b, loc, type, from);
    }
  }
  if (element.isInteger(1))
    result = make<arith::CmpIOp>(arith::CmpIPredicate::ne, result, constantOf(b.getZeroAttr(type)));
  if (ir::isHalf(element))
    result = widenHalf(b, loc, result, element);
  return result;
}

void LaneEmitter::store(const Memory &memory, AffineExpr offset, const Lanes &lanes, Element element) {
  Type stored = getMemoryElement(memory.type.getElementType());
  Value value = valueOf(element);
  if (memory.type.getElementType().isInteger(1))
    value = make<arith::ExtUIOp>(vectorOf(stored), value);
  if (ir::isHalf(memory.type.getElementType()))
    value = narrowToHalf(b, loc, value, memory.type.getElementType());
  LinearIndex index = space().analyze(offset);
  // With one lane, whose number is 0, the stride along the lane variable does not matter.
  int64_t step = lanes.variable ? index.coefficientOf(lanes.variable) : 0;
  if (!lanes.variable || (lanes_ == 1 && step != 1)) {
    if (step != 0)
      index.add(lanes.variable, -step);
    Value to = elementAddress(b, loc, stored, address(memory), uniformValue(index));
    Value first = make<vector::ExtractOp>(value, ArrayRef<int64_t>{0});
    b.create<LLVM::StoreOp>(loc, first, to, alignmentOf(stored));
    return;
  }
  Value exists = maskOf(lanes.exists).lanes;
  if (!space().isContiguous(offset, lanes.variable)) {
    LinearIndex uniform, varying;
    splitByLanes(offset, uniform, varying);
    Value from = elementAddress(b, loc, stored, address(memory), uniformValue(uniform));
    if (std::optional<int64_t> stride = strideOf(varying, lanes); stride && !exists) {
      for (int64_t lane = 0; lane < lanes_; ++lane)
        b.create<LLVM::StoreOp>(loc, make<vector::ExtractOp>(value, ArrayRef<int64_t>{lane}),
                                elementAddress(b, loc, stored, from, lane * *stride), alignmentOf(stored));
      return;
    }
    b.create<LLVM::masked_scatter>(loc, value, addresses(stored, from, varying), exists ? exists : allLanes(),
                                   alignmentOf(stored));
    return;
  }
  index.add(lanes.variable, -1);
  Value to = elementAddress(b, loc, stored, address(memory), uniformValue(index));
  if (exists)
    b.create<LLVM::MaskedStoreOp>(loc, value, to, exists, alignmentOf(stored));
  else
    storeVector(b, loc, value, to);
}

void LaneEmitter::prefetch(const Memory &memory, AffineExpr offset, bool forWrite) {
  Type stored = getMemoryElement(memory.type.getElementType());
  cpu::prefetch(b, loc, elementAddress(b, loc, stored, address(memory), uniformValue(space().analyze(offset))),
                forWrite);
}

void LaneEmitter::storeZeros(const Memory &memory, AffineExpr offset, int64_t count) {
  Type stored = getMemoryElement(memory.type.getElementType());
  Value zeros = make<arith::ConstantOp>(b.getZeroAttr(VectorType::get({count}, stored)));
  storeVector(b, loc, zeros, elementAddress(b, loc, stored, address(memory), uniformValue(space().analyze(offset))));
}

// Operations across lanes.

Element LaneEmitter::rotate(Element element, int64_t by) {
  SmallVector<int64_t> from;
  for (int64_t lane = 0; lane < lanes_; ++lane)
    from.push_back((lane + by) % lanes_);
  return handleOf<Element>(make<vector::ShuffleOp>(valueOf(element), valueOf(element), from));
}

Element LaneEmitter::spreadFirst(Element element) {
  return handleOf<Element>(splat(make<vector::ExtractOp>(valueOf(element), ArrayRef<int64_t>{0})));
}

LaneArray LaneEmitter::makeArray(Element like, int64_t count) {
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(outermost);
  Type pointer = LLVM::LLVMPointerType::get(b.getContext());
  return handleOf<LaneArray>(make<LLVM::AllocaOp>(pointer, valueOf(like).getType(), valueOf(constant(count)), 64));
}

Element LaneEmitter::read(LaneArray array, Count place) {
  auto type = cast<LLVM::AllocaOp>(valueOf(array).getDefiningOp()).getElemType();
  Value from = elementAddress(b, loc, type, valueOf(array), valueOf(place));
  return handleOf<Element>(make<LLVM::LoadOp>(type, from));
}

void LaneEmitter::write(LaneArray array, Count place, Element element) {
  Value value = valueOf(element);
  b.create<LLVM::StoreOp>(loc, value, elementAddress(b, loc, value.getType(), valueOf(array), valueOf(place)));
}

} // namespace sluice::cpu
