#include "backends/cuda/compiler/product/Epilogue.h"

#include "backends/cuda/compiler/emit/ThreadEmitter.h"
#include "backends/loops/Elements.h"
#include "ir/Layout.h"
#include "ir/Work.h"
#include <fmt/format.h>

namespace sluice::cuda {

using namespace mlir;
using namespace loops;

static ir::YieldOp yieldOf(ir::KernelOp kernel) { return cast<ir::YieldOp>(kernel.getBody().front().getTerminator()); }

/// The workspace follows the kernel's operands and results.
static int64_t workspaceOf(ir::KernelOp kernel) { return kernel.getNumOperands() + kernel.getNumResults(); }

bool isBeside(Operation *product, Value result) {
  Operation *maker = result.getDefiningOp();
  return maker && maker != product && ir::isReduction(maker);
}

namespace {

/// The values that the epilogue stores, and where.
struct Results {
  SmallVector<Value> values;
  SmallVector<Memory> memories;
};

} // namespace

static Results resultsOf(ir::KernelOp kernel, Operation *product) {
  Results results;
  for (auto [number, value] : llvm::enumerate(yieldOf(kernel).getOperands()))
    if (!isBeside(product, value)) {
      results.values.push_back(value);
      results.memories.push_back({int64_t(kernel.getNumOperands() + number), 0, tensorTypeOf(value)});
    }
  return results;
}

/// Binds the kernel's operands to their buffers, except those that only the product reads.
static void bindOperands(Elements &elements, ir::KernelOp kernel, Operation *product) {
  auto isOther = [&](Operation *user) { return user != product; };
  for (BlockArgument argument : kernel.getBody().front().getArguments())
    if (llvm::any_of(argument.getUsers(), isOther))
      elements.bind(argument, {int64_t(argument.getArgNumber()), 0, tensorTypeOf(argument)});
}

namespace {

/// Iterates over a thread's sums in two loops: the outer loop over groups that are contiguous in the result, which are
/// lanes, the inner loop over rows or columns on the other side.
class Epilogue {
public:
  Epilogue(const TiledProduct &product, ir::KernelOp kernel)
      : p(product), kernel(kernel), lanes(p.acrossM ? p.m : p.n), others(p.acrossM ? p.n : p.m),
        emitter(kernel.getContext(), {/*threads=*/1, lanes.width}), elements(emitter, formulas, p.capacity),
        dims(p.product.dims.size(), getAffineConstantExpr(0, kernel.getContext())) {}

  FailureOr<std::string> write();

private:
  AffineExpr variable(const std::string &name, int64_t size) {
    return elements.scopes().variable(emitter.countNamed(name), {0, size - 1});
  }
  AffineExpr inDims(AffineExpr index) const { return index.replaceDims(dims); }
  void forEachGroup();
  void forEachOther(Count group);
  void storeAll(Count group, Count other);
  Condition both(Condition a, Condition b) { return a && b ? emitter.both(a, b) : a ? a : b; }
  Condition inResult(bool ofLanes);
  bool usesLanes(AffineExpr condition) const;

  const TiledProduct &p;
  ir::KernelOp kernel;
  const TileSide &lanes, &others;
  ThreadEmitter emitter;
  Formulas formulas;
  Elements elements;
  SmallVector<AffineExpr> dims; // of the product, as emitted
  AffineExpr chunk;
};

} // namespace

FailureOr<std::string> Epilogue::write() {
  bindOperands(elements, kernel, p.op);
  p.batch.take(variable("element", p.batch.atCapacity()), dims);
  if (p.termsOfChunk)
    chunk = variable("chunk", p.maxChunks);
  forEachGroup();
  if (elements.hasFailed())
    return failure();
  return "  {\n  const int thread = 0; // each for itself\n" + emitter.body() + "  }\n";
}

/// The condition that the element of the result exists, as far as it depends on the side of the lanes (`ofLanes`), or
/// on the other side.
Condition Epilogue::inResult(bool ofLanes) {
  Condition all;
  for (AffineExpr condition : llvm::concat<const AffineExpr>(p.product.inResult, p.product.isStored))
    if (usesLanes(condition) == ofLanes)
      all = both(all, emitter.isNonNegative(emitter.space().normalize(inDims(condition))));
  return all;
}

bool Epilogue::usesLanes(AffineExpr condition) const {
  return p.product.uses(condition, p.acrossM ? Product::M : Product::N);
}

void Epilogue::forEachGroup() {
  Scopes &scopes = elements.scopes();
  const Flat &flat = lanes.flat;
  int64_t width = lanes.width, groups = lanes.perThread / width;
  std::string tile = p.acrossM ? "tileOfM" : "tileOfN", of = p.acrossM ? "ofM" : "ofN",
              count = p.acrossM ? "countOfM" : "countOfN";
  scopes.loop(emitter.constant(0), emitter.constant(groups), 1, groups, {}, [&](Count group, ArrayRef<Element>) {
    emitter.statement(fmt::format("const {0} groupOfLanes = ({1} * {2} + {3}) / {4} + ({0}){5} * {6};", p.numberType(),
                                  tile, lanes.tile, of, width, emitter.nameOf(group), lanes.stride / width));
    bool fillsTiles = !flat.hasRows && flat.inner % lanes.tile == 0, fillsGroups = flat.inner % width == 0;
    Condition exists;
    if (!fillsTiles && fillsGroups)
      exists = emitter.conditionThat(fmt::format("groupOfLanes * {} < {}", width, count));
    scopes.block(exists, {}, [&] {
      AffineExpr first = variable("groupOfLanes", (flat.atCapacity() + width - 1) / width) * width;
      AffineExpr lane = scopes.laneVariable();
      flat.take(first + lane, dims);
      Condition laneExists = inResult(/*ofLanes=*/true);
      if (!fillsGroups)
        laneExists =
            both(laneExists,
                 emitter.conditionThat(fmt::format("groupOfLanes * {} + {} < {}", width, emitter.laneNumber(), count)));
      scopes.current()->lanes.exists = laneExists;
      forEachOther(group);
      return Scopes::Carried();
    });
    return Scopes::Carried();
  });
}

void Epilogue::forEachOther(Count group) {
  Scopes &scopes = elements.scopes();
  const Flat &flat = others.flat;
  std::string tile = p.acrossM ? "tileOfN" : "tileOfM", of = p.acrossM ? "ofN" : "ofM";
  Count begin = emitter.constant(0), end = emitter.constant(others.perThread);
  scopes.loop(begin, end, 1, others.perThread, {}, [&](Count other, ArrayRef<Element>) {
    emitter.statement(fmt::format("const {6} other = {0} * {1} + {2} + ({6})({3} / {4} * {5} + {3} % {4});", tile,
                                  others.tile, of, emitter.nameOf(other), others.width, others.stride, p.numberType()));
    Condition exists;
    if (flat.hasRows || flat.inner % others.tile != 0)
      exists = emitter.conditionThat(p.acrossM ? "other < countOfN" : "other < countOfM");
    scopes.block(exists, {}, [&] {
      // At least two values: the block of this variable contains the sums, so their index must not lose it.
      auto place = [&] { flat.take(variable("other", std::max<int64_t>(2, flat.atCapacity())), dims); };
      place();
      Condition held = inResult(/*ofLanes=*/false);
      if (!held) {
        storeAll(group, other);
        return Scopes::Carried();
      }
      return scopes.block(held, {}, [&] { // with a separate variable: its users stay in the block
        place();
        storeAll(group, other);
        return Scopes::Carried();
      });
    });
    return Scopes::Carried();
  });
}

/// Everything is computed before anything is stored, so that a result may share the memory of an operand of the same
/// shape.
void Epilogue::storeAll(Count group, Count other) {
  std::string ofLanes = fmt::format("{} * {} + {}", emitter.nameOf(group), lanes.width, emitter.laneNumber());
  std::string sum = fmt::format("sum[{}][{}]", p.acrossM ? ofLanes : emitter.nameOf(other),
                                p.acrossM ? emitter.nameOf(other) : ofLanes);
  if (Type stored = p.type.getElementType(); ir::isHalf(stored) && !p.termsOfChunk)
    sum = fmt::format("rounded<{}>({})", memoryTypeName(stored), sum);
  Element sums = emitter.elementThat(p.scalar, sum);
  SmallVector<AffineExpr> index =
      llvm::map_to_vector(p.product.result, [&](AffineExpr expr) { return emitter.space().normalize(inDims(expr)); });
  if (p.termsOfChunk) {
    Memory memory{workspaceOf(kernel), 0, RankedTensorType::get({p.elements() * p.maxChunks}, p.sum())};
    elements.store(memory, emitter.space().normalize(chunk * p.elements() + elements.offsetOf(p.type, index)), sums);
    return;
  }
  elements.seed(p.op->getResult(0), index, sums);
  SmallVector<std::pair<Memory, Element>> stores;
  Results results = resultsOf(kernel, p.op);
  for (auto [memory, value] : llvm::zip_equal(results.memories, results.values))
    stores.push_back({memory, elements.element(value, index)});
  for (auto &[memory, element] : stores)
    elements.store(memory, elements.offsetOf(memory.type, index), element);
}

FailureOr<std::string> epilogueText(const TiledProduct &product, ir::KernelOp kernel) {
  return Epilogue(product, kernel).write();
}

/// All that the epilogue stores, as it is yielded.
static LoopNest::Output outputOf(ir::KernelOp kernel, Operation *product) {
  Results results = resultsOf(kernel, product);
  auto all = [values = results.values](Elements &elements, AffineExpr, ArrayRef<AffineExpr> index) {
    return llvm::map_to_vector<2>(values, [&](Value value) { return elements.element(value, index); });
  };
  return {all, results.memories};
}

LogicalResult writeSumOfChunks(const TiledProduct &p, ir::KernelOp kernel, StringRef name, NestWriter &writer) {
  Formulas formulas;
  SplitFold split;
  split.op = p.op;
  split.overRows = p.k.hasRows;
  split.chunk = p.k.hasRows ? p.rowsOfChunk() : p.termsOfChunk;
  split.parts = p.partsOfRow;
  split.maxChunks = p.maxChunks;
  split.elements = p.elements();
  split.buffer = workspaceOf(kernel);
  split.byteOffsets = {0};
  split.carried = {p.sum()};
  LoopNest nest{(name + "_sum").str(), p.op->getLoc(), formulas, p.type, std::nullopt, {}, 0, false, {}, {}, {}};
  nest.bytesPerElement = double(p.scalarBytes * p.maxChunks);
  nest.prepare = [&](Elements &elements) {
    bindOperands(elements, kernel, p.op);
    elements.bind(split);
  };
  nest.outputs.push_back(outputOf(kernel, p.op));
  return writer.write(nest);
}

LogicalResult writeBehindProduct(Operation *product, ir::KernelOp kernel, StringRef name, NestWriter &writer) {
  Formulas formulas;
  LoopNest nest{
      name.str(), product->getLoc(), formulas, tensorTypeOf(product->getResult(0)), std::nullopt, {}, 0, false, {}, {},
      {}};
  nest.bytesPerElement = double(kernel.getNumOperands() * ir::getElementBytes(nest.space.getElementType()));
  nest.prepare = [&](Elements &elements) {
    bindOperands(elements, kernel, product);
    elements.bind(product->getResult(0), resultsOf(kernel, product).memories.front());
  };
  nest.outputs.push_back(outputOf(kernel, product));
  return writer.write(nest);
}

} // namespace sluice::cuda
