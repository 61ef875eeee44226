// A kernel is a sequence of loop nests.
//
//   sum over [256, 26, 26, 20] to [20] of max(x, 0), and max(x, 0) itself
//     ==> stage 1, a task for each chunk of rows: max(x, 0), stored; its sum over the chunk, to the workspace
//         stage 2: the chunks' sums, added in the order of Fold.h
//
// 1. A large reduction to a small result without rows is split into chunks (splitOf). One nest computes the chunks'
//    partial results, and each consumer of the reduction's value combines them. If a consumer is itself split, or is a
//    nest over more elements than the reduction's result has, a separate nest stores the value first.
// 2. The remaining results are grouped by index space, with one nest each, which shares loads and loops.
//
// A kernel with a `scatter_add` is two separate nests (ScatterNest.h), one with a `cumsum` is one (SumNest.h). Of an
// update in place, such as `dynamic_update_slice`, only the updated part is stored, by a nest over its elements.
#include "backends/loops/LoopKernel.h"

#include "backends/loops/Padding.h"
#include "backends/loops/ScatterNest.h"
#include "backends/loops/SumNest.h"
#include "ir/Layout.h"
#include "ir/Work.h"
#include "mlir/IR/TypeUtilities.h"

namespace sluice::loops {

using namespace mlir;

// Maximum number of partial results, over all chunks, if each row is split into parts (partsOf).
static constexpr int64_t kMostPartialResults = 1 << 20;

namespace {

/// The stored part of a result, and its elements: for an in-place update, the updated part.
struct Stored {
  explicit Stored(Value result) : value(result), space(cast<RankedTensorType>(result.getType())) {
    auto made = result.getDefiningOp<ir::DynamicUpdateSliceOp>();
    if (!made || !made.getInPlace() || !ir::isUncut(space))
      return;
    update = made;
    value = ir::storedBy(made);
    RankedTensorType part = made.getPart().getType(), type = cast<RankedTensorType>(value.getType());
    bool isUncut = ir::isUncut(type);
    if (!isUncut)
      value = made.getPart();
    space = isUncut ? type : RankedTensorType::get(part.getShape(), part.getElementType(), space.getEncoding());
  }

  /// Maps an index of `value` to an index of the result.
  AffineExpr offsetIn(Elements &elements, ArrayRef<AffineExpr> index) const;

  Value value;
  RankedTensorType space;
  ir::DynamicUpdateSliceOp update; ///< null if all of the result is stored
};

} // namespace

AffineExpr Stored::offsetIn(Elements &elements, ArrayRef<AffineExpr> index) const {
  ir::DynamicUpdateSliceOp made = update;
  int64_t axis = made.getAxis();
  SmallVector<AffineExpr> in(index);
  if (value != made.getPart()) {
    auto expand = made.getPart().getDefiningOp<ir::ExpandOp>();
    in.assign(made.getPart().getType().getRank(), getAffineConstantExpr(0, made.getContext()));
    for (auto [at, dim] : llvm::zip_equal(index, expand.getDims()))
      in[dim] = at;
  }
  in[axis] = in[axis] + elements.dataIndex(made.getIndex(), {}, made.getIndexBounds()[2]);
  return elements.offsetOf(made.getY().getType(), in);
}

namespace {

class LoopKernel {
public:
  LoopKernel(ir::KernelOp kernel, ArrayRef<unsigned> results, StringRef name, int64_t capacity, NestWriter &writer)
      : kernel(kernel), body(kernel.getBody().front()), yield(cast<ir::YieldOp>(body.getTerminator())), name(name),
        capacity(capacity), writer(writer), workspace(kernel.getNumOperands() + kernel.getNumResults()),
        stored(kernel.getNumResults(), true) {
    for (unsigned number : results)
      stored[number] = false;
  }

  FailureOr<int64_t> write() {
    for (auto [number, argument] : llvm::enumerate(body.getArguments()))
      memories[argument] = {int64_t(number), 0, cast<RankedTensorType>(argument.getType())};
    findNeeded();
    if (Operation *scatter = findScatter(yield))
      return writeScatter(scatter);
    if (ir::CumSumOp sums = findSums(yield))
      return writeSums(sums);
    return writeResults();
  }

private:
  FailureOr<int64_t> writeResults() {
    survey();
    for (ArrayRef<Operation *> left = splitOps; !left.empty();) {
      size_t count = 1;
      while (count < left.size() &&
             llvm::all_of(left.take_front(count), [&](Operation *other) { return splitAlike(other, left[count]); }))
        ++count;
      if (failed(emitSplits(left.take_front(count))))
        return failure();
      left = left.drop_front(count);
    }
    for (unsigned number = 0; number < stored.size(); ++number)
      if (!stored[number] && failed(emitResults(number)))
        return failure();
    return workspaceBytes;
  }

  void findNeeded();
  void survey();
  int64_t partsOf(const Reduction &fold, int64_t kept, int64_t elementsOfRow) const;
  std::optional<SplitFold> splitOf(Operation *op, const Reduction &fold);
  LogicalResult emitZeros(Memory y, Location loc);
  FailureOr<int64_t> writeScatter(Operation *scatter);
  FailureOr<int64_t> writeSums(ir::CumSumOp sums);
  bool splitAlike(Operation *other, Operation *op);
  std::optional<unsigned> storedByFold(Operation *op);
  LogicalResult emitSplits(ArrayRef<Operation *> ops);
  LogicalResult emitValue(Operation *op);
  LogicalResult emitResults(unsigned first);
  LogicalResult emit(const LoopNest &nest) {
    ++nests;
    return writer.write(nest);
  }
  LoopNest nestOver(RankedTensorType space, Location loc, StringRef suffix);
  bool isReadByLargerNest(Operation *op);
  Borders bordersIn(RankedTensorType space);
  void markStored(unsigned number);
  Memory resultMemory(unsigned number) {
    return {int64_t(kernel.getNumOperands() + number), 0, cast<RankedTensorType>(kernel.getResult(number).getType())};
  }
  int64_t allocate(int64_t bytes) {
    int64_t offset = workspaceBytes;
    workspaceBytes += (bytes + 63) / 64 * 64;
    return offset;
  }
  int64_t countOf(Type type) {
    int64_t count = 1;
    for (int64_t size : cast<RankedTensorType>(type).getShape())
      count *= ShapedType::isDynamic(size) ? capacity : size;
    return count;
  }

  ir::KernelOp kernel;
  Block &body;
  ir::YieldOp yield;
  StringRef name;
  int64_t capacity;
  NestWriter &writer;
  int64_t workspace, workspaceBytes = 0;
  size_t nests = 0; // so far
  Formulas formulas;
  DenseMap<Value, Memory> memories;
  DenseMap<Operation *, SplitFold> splits; // whose partial results have been computed
  SmallVector<Operation *> splitOps;
  DenseMap<Operation *, SplitFold> planned;
  SmallVector<bool> stored;     // by result: already stored, or left to the caller
  DenseSet<Operation *> needed; // to compute the results
  bool folds = false;
};

} // namespace

LogicalResult LoopKernel::emitZeros(Memory y, Location loc) {
  LoopNest zeros = nestOver(y.type, loc, "_zeros");
  zeros.bytesPerElement = double(ir::getElementBytes(y.type.getElementType()));
  zeros.outputs.push_back({[y](Elements &e, AffineExpr, ArrayRef<AffineExpr>) {
                             return SmallVector<Element>{e.zero(y.type.getElementType())};
                           },
                           {y}});
  return emit(zeros);
}

FailureOr<int64_t> LoopKernel::writeScatter(Operation *scatter) {
  Memory y = resultMemory(0);
  if (failed(emitZeros(y, scatter->getLoc())))
    return failure();
  ScatterNest terms(scatter, y, formulas, capacity, writer);
  LoopNest nest = nestOver(terms.space(), scatter->getLoc(), "_terms");
  terms.fill(nest);
  if (failed(emit(nest)))
    return failure();
  return workspaceBytes;
}

FailureOr<int64_t> LoopKernel::writeSums(ir::CumSumOp sums) {
  Memory y = resultMemory(0);
  RankedTensorType columns = columnsOf(y.type, sums.getAxis());
  // If tiles split the axis, the padding of the last one is not part of the sum.
  if (columns.getEncoding() != y.type.getEncoding() && failed(emitZeros(y, sums.getLoc())))
    return failure();
  LoopNest nest = nestOver(columns, sums.getLoc(), "_sums");
  fillWithSums(nest, sums, y, formulas);
  if (failed(emit(nest)))
    return failure();
  return workspaceBytes;
}

void LoopKernel::findNeeded() {
  auto need = [&](Value value) {
    if (Operation *maker = value.getDefiningOp())
      needed.insert(maker);
  };
  for (auto [number, value] : llvm::enumerate(yield.getOperands()))
    if (!stored[number])
      need(value);
  for (Operation &op : llvm::reverse(body.without_terminator()))
    if (needed.contains(&op))
      llvm::for_each(op.getOperands(), need);
}

// Finds the folds to split into chunks.
void LoopKernel::survey() {
  for (Operation &op : body.without_terminator()) {
    const Formula *formula = needed.contains(&op) && isa<ir::ElementOp>(op) ? formulas.of(&op, 0) : nullptr;
    if (!formula)
      continue;
    ArrayRef<const Reduction *> found = formula->reductions;
    folds |= !found.empty();
    if (found.size() != 1 || op.getNumResults() != 1)
      continue;
    if (std::optional<SplitFold> split = splitOf(&op, *found[0])) {
      splitOps.push_back(&op);
      planned[&op] = *split;
    }
  }
}

/// The number of equal parts into which each row is split, for a fold to `kept` elements; 1: rows stay whole. A row has
/// `elementsOfRow` elements; 0: it must stay whole.
int64_t LoopKernel::partsOf(const Reduction &fold, int64_t kept, int64_t elementsOfRow) const {
  auto below = llvm::find_if(fold.extents, [](int64_t extent) { return extent > 1; });
  if (elementsOfRow == 0 || below == fold.extents.end())
    return 1;
  int64_t chunks = std::min(writer.mostChunks(), kMostPartialResults / kept);
  int64_t elements = std::max(writer.elementsPerPart(), writer.termsPerPart() * kept);
  int64_t most = std::min({*below, chunks / capacity, elementsOfRow / elements});
  int64_t parts = std::max<int64_t>(most, 1);
  while (parts > 1 && *below % parts != 0)
    --parts;
  return parts;
}

std::optional<SplitFold> LoopKernel::splitOf(Operation *op, const Reduction &fold) {
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  int64_t kept = countOf(type), folded = 1, outermost = 1;
  SplitFold split;
  for (int64_t extent : fold.extents) {
    int64_t size = extent == ir::ElementBuilder::kRows ? capacity : extent;
    folded *= size;
    if (outermost == 1 && !split.overRows) {
      outermost = size;
      split.overRows = extent == ir::ElementBuilder::kRows;
    }
  }
  if (!type.hasStaticShape() || kept > writer.mostElementsOfSplit() || kept * folded < 2 * writer.elementsPerChunk() ||
      outermost < 2)
    return std::nullopt;
  int64_t perIndex = kept * (folded / outermost);
  split.op = op;
  split.chunk = std::max<int64_t>(1, writer.elementsPerChunk() / perIndex);
  split.parts = partsOf(fold, kept, split.overRows && split.chunk == 1 ? perIndex : 0);
  split.maxChunks = (outermost + split.chunk - 1) / split.chunk * split.parts;
  split.elements = 1;
  for (int64_t size : ir::getPhysicalShape(type, capacity))
    split.elements *= size;
  split.buffer = workspace;
  if (split.maxChunks < 2 || split.elements != kept)
    return std::nullopt;
  for (Type element : fold.types) {
    split.carried.push_back(element);
    split.byteOffsets.push_back(allocate(split.maxChunks * split.elements * ir::getElementBytes(element)));
  }
  return split;
}

/// Whether the operand is only updated in place.
static bool staysInPlace(BlockArgument argument) {
  auto update = argument.hasOneUse() ? dyn_cast<ir::DynamicUpdateSliceOp>(*argument.user_begin()) : nullptr;
  return update && update.getInPlace() && update.getX() == argument;
}

LoopNest LoopKernel::nestOver(RankedTensorType space, Location loc, StringRef suffix) {
  LoopNest nest{(name + suffix).str(), loc, formulas, space, std::nullopt, {}, 8, folds, nullptr, nullptr, nullptr};
  double bytes = 0;
  auto isRead = [&](BlockArgument argument) {
    auto reads = [&](Operation *user) { return user == yield || needed.contains(user); };
    return !staysInPlace(argument) && llvm::any_of(argument.getUsers(), reads);
  };
  for (BlockArgument argument : body.getArguments())
    bytes += isRead(argument) ? ir::getBufferBytes(cast<RankedTensorType>(argument.getType()), capacity) : 0;
  double elements = std::max<int64_t>(1, countOf(space));
  nest.bytesPerElement = bytes / elements + ir::getElementBytes(space.getElementType());
  nest.prepare = [this](Elements &e) {
    for (auto &[value, memory] : memories)
      e.bind(value, memory);
    for (auto &[op, split] : splits)
      e.bind(split);
  };
  return nest;
}

// Later nests read the stored value, instead of computing it again.
void LoopKernel::markStored(unsigned number) {
  stored[number] = true;
  Value value = yield.getOperand(number);
  if (!isa<BlockArgument>(value))
    memories[value] = resultMemory(number);
}

/// Whether `op` is computed from `other`, which comes before it.
static bool isMadeFrom(Operation *op, Operation *other) {
  SmallVector<Operation *> work{op};
  DenseSet<Operation *> seen;
  while (!work.empty())
    for (Value operand : work.pop_back_val()->getOperands())
      if (Operation *maker = operand.getDefiningOp(); maker && seen.insert(maker).second) {
        if (maker == other)
          return true;
        work.push_back(maker);
      }
  return false;
}

/// Whether one nest can compute the chunks of both folds, `op` after `other`.
bool LoopKernel::splitAlike(Operation *other, Operation *op) {
  const SplitFold &a = planned[other], &b = planned[op];
  return other->getResult(0).getType() == op->getResult(0).getType() && a.chunk == b.chunk && a.parts == b.parts &&
         a.maxChunks == b.maxChunks && a.overRows == b.overRows && !storedByFold(other) && !storedByFold(op) &&
         !isMadeFrom(op, other);
}

/// The number of the result that is stored while a fold reads it: its operand, or the operand's narrow source, with the
/// same elements.
std::optional<unsigned> LoopKernel::storedByFold(Operation *op) {
  if (op->getNumOperands() == 0)
    return std::nullopt;
  Value operand = op->getOperand(0);
  auto isFolded = [&](Value value) {
    Operation *maker = operand.getDefiningOp();
    return value == operand || (maker && ir::isWidening(maker) && value == maker->getOperand(0));
  };
  for (auto [number, value] : llvm::enumerate(yield.getOperands()))
    if (!stored[number] && isFolded(value) && !isa<BlockArgument>(value) &&
        ir::getBufferBytes(cast<RankedTensorType>(value.getType()), capacity) ==
            countOf(operand.getType()) * ir::getElementBytes(getElementTypeOrSelf(value.getType())))
      return unsigned(number);
  return std::nullopt;
}

LogicalResult LoopKernel::emitSplits(ArrayRef<Operation *> ops) {
  auto type = cast<RankedTensorType>(ops.front()->getResult(0).getType());
  LoopNest nest = nestOver(type, ops.front()->getLoc(), "_partial_" + std::to_string(nests));
  nest.chunks = planned[ops.front()];
  nest.bytesPerElement /= nest.chunks->maxChunks;
  for (Operation *op : ops) {
    SplitFold split = splits[op] = planned[op];
    LoopNest::Output output;
    output.elements = [op](Elements &e, AffineExpr chunk, ArrayRef<AffineExpr> index) {
      return e.partial(op, chunk, index);
    };
    for (auto [byteOffset, carried] : llvm::zip(split.byteOffsets, split.carried))
      output.memories.push_back(
          {workspace, byteOffset, RankedTensorType::get(type.getShape(), carried, type.getEncoding())});
    nest.outputs.push_back(output);
  }
  if (std::optional<unsigned> onTheWay = storedByFold(ops.front())) {
    Value value = yield.getOperand(*onTheWay);
    double folded = double(countOf(value.getType()));
    nest.prepare = [=, this, prepare = nest.prepare](Elements &e) {
      prepare(e);
      e.storeOnTheWay(value, resultMemory(*onTheWay));
    };
    nest.penalty = [=, this](Elements &e) { return e.storedOnTheWay(value) ? 0 : folded / double(writer.lanes()) * 4; };
    nest.chosen = [=, this](Elements &e) {
      if (e.storedOnTheWay(value))
        markStored(*onTheWay);
    };
  }
  if (failed(emit(nest)))
    return failure();
  for (Operation *op : ops)
    if (isReadByLargerNest(op) && failed(emitValue(op)))
      return failure();
  return success();
}

// Whether some other reduction or result over more elements needs the value of `op`.
bool LoopKernel::isReadByLargerNest(Operation *op) {
  SmallVector<Operation *> work(op->getUsers());
  DenseSet<Operation *> seen;
  int64_t count = countOf(op->getResult(0).getType());
  while (!work.empty()) {
    Operation *user = work.pop_back_val();
    if (!seen.insert(user).second || user == yield)
      continue;
    if (planned.count(user) || countOf(user->getResult(0).getType()) > count)
      return true;
    work.append(user->user_begin(), user->user_end());
  }
  return false;
}

// Stores the value of a split reduction in its result's buffer, or in the workspace.
LogicalResult LoopKernel::emitValue(Operation *op) {
  Value value = op->getResult(0);
  auto type = cast<RankedTensorType>(value.getType());
  for (auto [number, yielded] : llvm::enumerate(yield.getOperands()))
    if (yielded == value && !stored[number])
      return emitResults(number);
  LoopNest nest = nestOver(type, op->getLoc(), "_value_" + std::to_string(nests));
  Memory memory{workspace, allocate(ir::getBufferBytes(type, capacity)), type};
  nest.outputs.push_back({[value](Elements &e, AffineExpr, ArrayRef<AffineExpr> index) {
                            return SmallVector<Element>{e.element(value, index)};
                          },
                          {memory}});
  if (failed(emit(nest)))
    return failure();
  memories[value] = memory;
  return success();
}

// The borders of windows, for ops whose results have the shape of `space`.
Borders LoopKernel::bordersIn(RankedTensorType space) {
  Borders borders(space.getRank());
  for (Operation &op : body.without_terminator()) {
    const Formula *formula = needed.contains(&op) && isa<ir::ElementOp>(op) ? formulas.of(&op, 0) : nullptr;
    if (!formula || cast<RankedTensorType>(op.getResult(0).getType()).getShape() != space.getShape())
      continue;
    for (auto [all, more] : llvm::zip(borders, bordersOf(*formula)))
      llvm::append_range(all, more);
  }
  for (SmallVector<int64_t, 2> &all : borders) {
    llvm::sort(all);
    all.erase(llvm::unique(all), all.end());
    if (all.size() > 2) // windows of several kinds
      all.clear();
  }
  bool hasBorders = llvm::any_of(borders, [](ArrayRef<int64_t> all) { return !all.empty(); });
  return hasBorders ? borders : Borders();
}

// All results of one type from `first` on that can be computed now.
LogicalResult LoopKernel::emitResults(unsigned first) {
  RankedTensorType space = Stored(yield.getOperand(first)).space;
  bool early = llvm::any_of(splitOps, [&](Operation *op) { return !splits.count(op); });
  LoopNest nest = nestOver(space, yield.getOperand(first).getLoc(), ("_" + Twine(nests)).str());
  SmallVector<unsigned> numbers;
  for (unsigned number = first; number < stored.size(); ++number) {
    Stored one(yield.getOperand(number));
    if (stored[number] || !ir::haveOneSpace(one.space, space) || (early && number != first))
      continue;
    LoopNest::Output output{[value = one.value](Elements &e, AffineExpr, ArrayRef<AffineExpr> index) {
                              return SmallVector<Element>{e.element(value, index)};
                            },
                            {resultMemory(number)}};
    if (one.update)
      output.offset = [one](Elements &e, ArrayRef<AffineExpr> index) { return one.offsetIn(e, index); };
    nest.outputs.push_back(output);
    nest.bytesPerElement += ir::getElementBytes(one.space.getElementType());
    numbers.push_back(number);
  }
  if (writer.splitsAtBorders())
    nest.borders = bordersIn(space);
  if (failed(emit(nest)))
    return failure();
  for (unsigned number : numbers)
    markStored(number);
  return success();
}

LogicalResult checkLayouts(ir::KernelOp kernel) {
  auto check = [&](Type type) -> LogicalResult {
    auto tensor = cast<RankedTensorType>(type);
    auto dims = ir::getPhysicalDims(tensor);
    if (failed(dims))
      return kernel.emitOpError("has a layout that is not made of dimensions and their floordiv and mod: ") << type;
    for (const ir::PhysicalDim &dim : *dims)
      if (dim.kind != ir::PhysicalDim::Whole && tensor.isDynamicDim(dim.logical))
        return kernel.emitOpError("has a layout that cuts the batch dimension into tiles: ") << type;
    return success();
  };
  for (Type type : kernel->getOperandTypes())
    if (failed(check(type)))
      return failure();
  for (Operation &op : kernel.getBody().front())
    for (Type type : op.getResultTypes())
      if (failed(check(type)))
        return failure();
  return success();
}

FailureOr<int64_t> writeLoopKernel(ir::KernelOp kernel, StringRef name, int64_t capacity, NestWriter &writer) {
  SmallVector<unsigned> all = llvm::to_vector(llvm::seq<unsigned>(0, kernel.getNumResults()));
  FailureOr<int64_t> bytes = LoopKernel(kernel, all, name, capacity, writer).write();
  if (failed(bytes) || failed(writePadding(kernel, name, PaddingOf::JoinedTiles, writer)))
    return failure();
  return bytes;
}

FailureOr<int64_t> writeResults(ir::KernelOp kernel, ArrayRef<unsigned> numbers, StringRef name, int64_t capacity,
                                NestWriter &writer) {
  return LoopKernel(kernel, numbers, name, capacity, writer).write();
}

} // namespace sluice::loops
