// State, and the ops that read and write it: verification.
#include "ir/Dialect.h"
#include "ir/Layout.h"
#include "ir/Module.h"
#include "ir/ops/Inference.h"
#include "ir/ops/model/Init.h"
#include "ir/text/Names.h"
#include "sluice/backend/blocks.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace sluice::ir {

static LogicalResult verifyZeroRow(StateOp state) {
  IntegerAttr row = state.getInit().getZeroRow();
  ArrayRef<int64_t> shape = state.getTensorType().getShape();
  if (!row)
    return success();
  if (!row.getType().isSignlessInteger(64))
    return state.emitOpError("begins with a row of zeros whose number is no i64: ") << row;
  if (shape.empty() || row.getInt() < 0 || row.getInt() >= shape[0])
    return state.emitOpError("begins with a row of zeros that it has not: ")
           << row.getInt() << " of " << printShape(shape);
  return success();
}

/// A state with data names them by checksum; the bytes are stored elsewhere.
static LogicalResult verifyData(StateOp state) {
  InitAttr init = state.getInit();
  IntegerAttr sum = init.getCrc32();
  if (init.isData() != bool(sum))
    return state.emitOpError("cannot begin so: ") << (sum ? "crc32 is of data" : "data needs its crc32");
  if (sum && (!sum.getType().isSignlessInteger(64) || sum.getInt() < 0 || sum.getInt() > UINT32_MAX))
    return state.emitOpError("begins with data whose crc32 is none: ") << sum;
  if (init.isData() && init.getZeroRow())
    return state.emitOpError("begins with data, which has its own row of zeros");
  if (state.getKind() == StateKind::Constant && !init.isData())
    return state.emitOpError("is a constant, and begins with no data: ") << init;
  return success();
}

static LogicalResult verifyInit(StateOp state) {
  InitAttr init = state.getInit();
  StringRef kind = init.getKind();
  if (!init.getA().getType().isF64() || (init.getB() && !init.getB().getType().isF64()))
    return state.emitOpError("begins with numbers that are not f64: ") << init;
  bool takesOne = kind == "constant" || kind == "key" || init.isData(),
       takesTwo = kind == "uniform" || kind == "normal";
  if (init.getB() ? takesOne : takesTwo)
    return state.emitOpError("cannot begin so: ") << kind << " takes " << (takesTwo ? "two numbers" : "one number");
  if (failed(verifyData(state)))
    return failure();
  double a = init.getA().getValueAsDouble(), b = init.getB() ? init.getB().getValueAsDouble() : 0;
  if (state.getKind() == StateKind::Cache && (kind != "constant" || a != 0))
    return state.emitOpError("is a cache, which begins with zeros: ") << init;
  if (state.getKind() == StateKind::Derived && (kind != "constant" || a != 0))
    return state.emitOpError("is derived, so its initial value must be zero: ") << init;
  if (state.getKind() == StateKind::Accumulator)
    return takesOne && (a == 0 || a == leastOf(state.getTensorType().getElementType()))
               ? success()
               : state.emitOpError("begins with neither 0 nor the least of its type: ") << init;
  if (std::string problem = problemOfInit(kind, a, b, state.getTensorType()); !problem.empty())
    return state.emitOpError("cannot begin so: ") << problem;
  return verifyZeroRow(state);
}

/// A state that is `like` another follows it, and has its type and its initial value.
static LogicalResult verifyLike(StateOp state, SymbolTableCollection &symbols) {
  if (!state.getLike())
    return success();
  auto other = symbols.lookupNearestSymbolFrom<StateOp>(state, state.getLikeAttr());
  if (!other || other.getLike() || !other->isBeforeInBlock(state))
    return state.emitOpError("begins like no state before it: @") << *state.getLike();
  if (other.getType() != state.getType() || other.getInit() != state.getInit())
    return state.emitOpError("begins like @") << *state.getLike() << ", which is another type or begins otherwise";
  return success();
}

/// Aliases are unique: no state and no other alias has the name.
static LogicalResult verifyAliases(StateOp state) {
  auto taken = [&](StringRef alias) { return state.emitOpError("has another name that is taken: ") << alias; };
  auto module = state->getParentOfType<ModuleOp>();
  if (!state.getAliases() || !module)
    return success();
  if (state.getKind() != StateKind::Parameter)
    return state.emitOpError("has other names, as parameters alone may");
  llvm::StringSet<> own;
  for (StringRef alias : state.getAliases()->getAsValueRange<StringAttr>())
    if (!own.insert(alias).second)
      return taken(alias);
  for (auto other : module.getOps<StateOp>()) {
    if (own.contains(other.getSymName()))
      return taken(other.getSymName());
    if (other == state || !other.getAliases())
      continue;
    for (StringRef alias : other.getAliases()->getAsValueRange<StringAttr>())
      if (own.contains(alias))
        return taken(alias);
  }
  return success();
}

/// Derived states are computed from other states, which are not derived.
static LogicalResult verifySources(StateOp state, SymbolTableCollection &symbols) {
  bool isDerived = state.getKind() == StateKind::Derived;
  if (isDerived != (state.getSources() && !state.getSources()->empty()))
    return state.emitOpError(isDerived ? "is derived, but has no sources" : "has sources, but is not derived");
  if (!isDerived)
    return success();
  for (auto name : state.getSources()->getAsRange<FlatSymbolRefAttr>()) {
    auto source = symbols.lookupNearestSymbolFrom<StateOp>(state, name);
    if (!source || source.getKind() == StateKind::Derived)
      return state.emitOpError("has the source ") << name << (source ? ", which is derived" : ", which is no state");
  }
  return success();
}

/// There is one scale for each block of elements along one dimension.
static LogicalResult verifyScales(StateOp scales, StateOp parameter) {
  RankedTensorType type = scales.getTensorType(), elements = parameter.getTensorType();
  bool fits = type.getRank() == elements.getRank() && type.getElementType().isF16() &&
              elements.getElementType().isUnsignedInteger(8);
  int64_t dimsOfBlocks = 0;
  for (int64_t dim = 0; fits && dim < type.getRank(); ++dim)
    if (type.getDimSize(dim) != elements.getDimSize(dim)) {
      ++dimsOfBlocks;
      fits = type.getDimSize(dim) * SLUICE_BLOCK_ELEMENTS == elements.getDimSize(dim);
    }
  if (fits && dimsOfBlocks == 1)
    return success();
  return scales.emitOpError("has type ") << type << ", which is no scale for each block of @" << parameter.getSymName()
                                         << ", of " << elements;
}

/// A slot, or the accumulator of a gradient, has its parameter's layout and therefore its shape.
LogicalResult StateOp::verifySymbolUses(SymbolTableCollection &symbols) {
  if (failed(verifyLike(*this, symbols)) || failed(verifyAliases(*this)) || failed(verifySources(*this, symbols)))
    return failure();
  if (!getOf())
    return getKind() == StateKind::Scales ? emitOpError("has scales of no parameter") : success();
  auto owner = symbols.lookupNearestSymbolFrom<StateOp>(*this, getOfAttr());
  if (!owner || owner == *this || owner.getOf())
    return emitOpError("belongs to no parameter: @") << *getOf();
  if (getKind() == StateKind::Scales)
    return verifyScales(*this, owner);
  if (owner.getTensorType().getShape() != getTensorType().getShape())
    return emitOpError("has the shape ") << printShape(getTensorType().getShape()) << ", what it belongs to "
                                         << printShape(owner.getTensorType().getShape());
  return success();
}

RankedTensorType StateOp::getKeptType() {
  RankedTensorType all = getTensorType();
  if (getShards() == 1)
    return all;
  return RankedTensorType::get({int64_t(llvm::divideCeil(uint64_t(all.getNumElements()), getShards()))},
                               all.getElementType());
}

/// Every replica has a separate shard.
static LogicalResult verifyStateShards(StateOp state) {
  auto module = state->getParentOfType<ModuleOp>();
  if (state.getShards() == 1)
    return success();
  if (state.getKind() != StateKind::Slot)
    return state.emitOpError("is no slot, and is kept in shards");
  if (module && int64_t(state.getShards()) != getReplicas(module))
    return state.emitOpError("has ") << state.getShards() << " shards, and there are " << getReplicas(module)
                                     << " replicas";
  return success();
}

/// A row-carried state is not a parameter's slot: dimension 0 counts the rows, and the initial value is zeros.
static LogicalResult verifyRows(StateOp state) {
  if (state.getKind() != StateKind::Slot || state.getOf() || !state.getTensorType().isDynamicDim(0))
    return state.emitOpError("has a symbolic shape: ") << printShape(state.getTensorType().getShape());
  InitAttr init = state.getInit();
  return init.getKind() == "constant" && init.getA().getValue().isZero()
             ? success()
             : state.emitOpError("is carried by rows, which begin with zeros: ") << init;
}

LogicalResult StateOp::verify() {
  if (std::string problem = problemOfName(getSymName()); !problem.empty())
    return emitOpError("is called ") << quoteName(getSymName()) << ": " << problem;
  if (!getTensorType().hasStaticShape() && failed(verifyRows(*this)))
    return failure();
  if (llvm::is_contained(getTensorType().getShape(), 0))
    return emitOpError("has an empty dimension: ") << printShape(getTensorType().getShape());
  if (!isSmallEnough(getTensorType().getShape()))
    return emitOpError("has more than 2^40 elements: ") << printShape(getTensorType().getShape());
  if (failed(checkElement(getLoc(), getTensorType().getElementType())))
    return failure();
  if (getTensorType().getEncoding())
    return emitOpError("the logical type has an encoding; it belongs to 'physical'");
  if (failed(verifyStateShards(*this)))
    return failure();
  if (getPhysical() && !sameShapesAndElements({getKeptType()}, {*getPhysical()}))
    return emitOpError("the physical type differs in more than its encoding: ")
           << getKeptType() << " and " << *getPhysical();
  return verifyInit(*this);
}

/// The state that `op` names, if it has this type.
static LogicalResult verifyStateUse(Operation *op, FlatSymbolRefAttr name, Type type, SymbolTableCollection &symbols) {
  auto state = symbols.lookupNearestSymbolFrom<StateOp>(op, name);
  if (!state)
    return op->emitOpError("names no state: ") << name;
  RankedTensorType kept = state.getKeptType();
  if (!kept.hasStaticShape() && cast<RankedTensorType>(type).hasStaticShape()) // the maximum number of rows
    kept = kept.clone(runtimeShape(kept, getCapacity(op->getParentOfType<ModuleOp>())));
  if (!sameShapesAndElements({kept}, {type}))
    return op->emitOpError("has type ") << type << ", the state has " << state.getKeptType();
  return success();
}

void GetOp::getAsmResultNames(OpAsmSetValueNameFn setName) { setName(getValue(), getState()); }

LogicalResult GetOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyStateUse(*this, getStateAttr(), getValue().getType(), symbols);
}

/// In a graph, only entry points that the graph defines may set caches, and they may set nothing else.
LogicalResult SetOp::verifySymbolUses(SymbolTableCollection &symbols) {
  if (failed(verifyStateUse(*this, getStateAttr(), getValue().getType(), symbols)))
    return failure();
  StateKind kind = symbols.lookupNearestSymbolFrom<StateOp>(*this, getStateAttr()).getKind();
  auto list = dyn_cast<EntryOp>((*this)->getParentOp());
  if (kind == StateKind::Derived && (!list || !list.getInputs().empty() || !list.getOutputs().empty()))
    return emitOpError("sets a derived state outside of an entry point without inputs and outputs: ") << getStateAttr();
  bool isCache = kind == StateKind::Cache;
  if (isCache == bool(getEntry()) || !isa<GraphOp>((*this)->getParentOp()))
    return success();
  return isCache ? emitOpError("sets a cache in no entry point of the graph's own: ") << getStateAttr()
                 : emitOpError("sets what is no cache in an entry point of the graph's own: ") << getStateAttr();
}

} // namespace sluice::ir
