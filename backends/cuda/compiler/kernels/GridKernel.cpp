#include "backends/cuda/compiler/kernels/GridKernel.h"

#include "backends/cuda/compiler/attention/AttentionKernel.h"
#include "backends/cuda/compiler/emit/ThreadEmitter.h"
#include "backends/cuda/compiler/kernels/ScatterKernel.h"
#include "backends/cuda/compiler/kernels/TransposeKernel.h"
#include "backends/cuda/compiler/product/ProductKernel.h"
#include "backends/loops/LoopKernel.h"
#include "backends/loops/NestTasks.h"
#include <algorithm>

namespace sluice::cuda {

using namespace mlir;
using namespace loops;

// A warp has few loads in flight: tasks are many, and hide each other's latency.
static constexpr double kBytesPerTask = 4 << 10;
// The number of warps that fill a device: with fewer warps, a nest is not faster.
static constexpr int64_t kWarpsAtOnce = 2048;
// Folds with this many terms use a block if warps are few. For longer folds, a warp per fold would keep more rows
// active than caches hold, so that each pass over them would read memory again.
static constexpr int64_t kTermsOfBlock = 1024, kTermsOfCache = 16 << 10;
// A thread of a larger block would have too few registers.
static constexpr int64_t kThreadsOfLargestBlock = 512;
// The cost ratio up to which a whole fold is preferred to repeated folds: memory also serves other kernels.
static constexpr double kMoreForWhole = 2;
// Contiguous elements per warp if nothing is folded, or for a chunk of many columns: 16 bytes of floats per thread.
static constexpr int64_t kPacked = 128;
// Limits of widening (GridWriter::widened): minimum tasks, which still fill the device; and maximum bytes of the text,
// with which a thread's registers grow.
static constexpr int64_t kFewWarps = kWarpsAtOnce / 4;
static constexpr size_t kMuchText = 40 << 10;

bool usesTf32(Operation *op, const GridOptions &options) {
  bool isConvolution = isa<ir::Conv2dOp, ir::Conv2dInputGradOp, ir::Conv2dWeightGradOp>(op);
  return cast<RankedTensorType>(op->getOperand(0).getType()).getElementType().isF32() &&
         options.math >= (isConvolution ? SLUICE_MATH_TF32_CONVOLUTIONS : SLUICE_MATH_TF32);
}

namespace {

class GridWriter : public NestWriter {
public:
  GridWriter(int64_t buffers, int64_t capacity) : buffers(buffers), capacity(capacity) {}

  int64_t lanes() const final { return kWarp; }
  int64_t elementsPerChunk() const final { return 32 << 10; }
  int64_t elementsPerPart() const final { return 2 << 10; }
  int64_t termsPerPart() const final { return 12; }
  int64_t mostChunks() const final { return 4096; }
  int64_t mostElementsOfSplit() const final { return 16 << 10; }
  int64_t wantedTasks() const final { return kWarpsAtOnce; }
  int64_t elementsAtOnce() const final { return kWarp; }
  LogicalResult write(const LoopNest &nest) final;

  GridKernel kernel;

private:
  /// The mapping of a nest to threads. Tasks that share a fold each repeat it, unless they are `whole`: then they are
  /// one task.
  struct Plan {
    ThreadGroup group;
    bool whole = false;
    NestTasks::Way way = {0, 0};
    NestTasks::Weight weight = {}; // of nests that fold
    int64_t tasks = 0;
    bool isBetterThan(const Plan &other) const { return weight.cost < other.weight.cost; }
  };
  NestTasks tasksOf(const LoopNest &nest, const Plan &plan) const;
  ThreadEmitter emitterOf(const LoopNest &nest, const Plan &plan, NestTasks::Way way) const;
  FailureOr<Plan> inBestWay(const LoopNest &nest, Plan plan) const;
  FailureOr<Plan> cutOrWhole(const LoopNest &nest, ThreadGroup group) const;
  FailureOr<Plan> choose(const LoopNest &nest) const;
  NestTasks::Way widened(const LoopNest &nest, const Plan &plan, NestTasks &tasks) const;

  int64_t buffers, capacity;
};

} // namespace

/// All bytes that a nest reads and writes.
static double bytesOf(const LoopNest &nest, int64_t capacity) {
  double bytes = nest.bytesPerElement;
  for (int64_t size : ir::getPhysicalShape(nest.space, capacity))
    bytes *= double(size);
  return bytes;
}

NestTasks GridWriter::tasksOf(const LoopNest &nest, const Plan &plan) const {
  int64_t warps = plan.group.threads / kWarp;
  double bytes = double(warps) * std::min(kBytesPerTask, bytesOf(nest, capacity) / double(kWarpsAtOnce));
  return NestTasks(nest, plan.group.lanes(), bytes, plan.whole ? 1 : kWarpsAtOnce / warps, capacity);
}

ThreadEmitter GridWriter::emitterOf(const LoopNest &nest, const Plan &plan, NestTasks::Way way) const {
  return ThreadEmitter(nest.space.getContext(), {plan.group.threads, plan.group.perThread * way.groups});
}

FailureOr<GridWriter::Plan> GridWriter::inBestWay(const LoopNest &nest, Plan plan) const {
  NestTasks tasks = tasksOf(nest, plan);
  double warps = double(plan.group.threads / kWarp);
  auto weigh = [&](NestTasks::Way one) {
    if (!nest.folds) // as they will be
      one = tasks.widened(one, kPacked);
    tasks.take(one);
    ThreadEmitter emitter = emitterOf(nest, plan, one);
    FailureOr<NestTasks::Weight> weight = tasks.emit(emitter, emitter.task(), /*keep=*/false);
    if (succeeded(weight))
      weight->cost += emitter.cost() * std::max(double(tasks.tasksAtCapacity()) * warps, double(kWarpsAtOnce));
    return weight;
  };
  FailureOr<NestTasks::Way> way = tasks.choose(weigh);
  if (failed(way))
    return failure();
  plan.way = *way;
  if (!nest.folds)
    return plan;
  FailureOr<NestTasks::Weight> weight = weigh(*way);
  if (failed(weight))
    return failure();
  plan.weight = *weight;
  plan.tasks = tasks.tasksAtCapacity();
  return plan;
}

FailureOr<GridWriter::Plan> GridWriter::cutOrWhole(const LoopNest &nest, ThreadGroup group) const {
  FailureOr<Plan> cut = inBestWay(nest, {group});
  if (failed(cut) || !nest.folds)
    return cut;
  FailureOr<Plan> whole = inBestWay(nest, {group, /*whole=*/true});
  return failed(whole) || whole->weight.cost <= kMoreForWhole * cut->weight.cost ? whole : cut;
}

/// The threads of a block that runs one fold: doubled while the device has too few warps or a thread has more than 64
/// terms, unless a thread would have less than two.
static int64_t threadsOfBlock(int64_t terms, int64_t tasks) {
  int64_t threads = 4 * kWarp;
  auto isFew = [&] { return tasks * threads < kWarpsAtOnce * kWarp || terms > 64 * threads; };
  while (threads < kThreadsOfLargestBlock && 4 * threads <= terms && isFew())
    threads *= 2;
  return threads;
}

// The mapping may depend only on the nest's shape at capacity, because it may affect the order of sums.
FailureOr<GridWriter::Plan> GridWriter::choose(const LoopNest &nest) const {
  FailureOr<Plan> best = cutOrWhole(nest, {kWarp});
  if (failed(best) || !nest.folds)
    return best;
  int64_t terms = best->weight.termsAlong;
  if (terms < kTermsOfBlock || (best->tasks >= kWarpsAtOnce && terms < kTermsOfCache))
    return best;
  int64_t threads = threadsOfBlock(terms, best->tasks);
  best->weight.cost *= terms < kTermsOfCache ? 1 : 2;
  for (int64_t perThread : {int64_t(1), kPacked / kWarp}) {
    if (threads * perThread > terms)
      break;
    FailureOr<Plan> block = cutOrWhole(nest, {threads, perThread});
    if (failed(block))
      return failure();
    // A fold across lanes keeps partial results of each element in registers.
    bool fits = perThread == 1 || !block->weight.foldsAcross;
    if (fits && block->isBetterThan(*best))
      best = block;
  }
  return best;
}

/// The mapping with more elements per thread, up to those of one load, if the nest has no fold or folds in registers.
NestTasks::Way GridWriter::widened(const LoopNest &nest, const Plan &plan, NestTasks &tasks) const {
  if (!nest.folds)
    return tasks.widened(plan.way, kPacked);
  bool foldsAlong = !nest.chunks && plan.weight.termsAlong > 0;
  if (!plan.weight.foldsAcross || foldsAlong || plan.group.lanes() != kWarp)
    return plan.way;
  auto isGood = [&](NestTasks::Way way) {
    tasks.take(way);
    ThreadEmitter emitter = emitterOf(nest, plan, way);
    return tasks.tasksAtCapacity() >= kFewWarps && succeeded(tasks.emit(emitter, emitter.task(), /*keep=*/false)) &&
           emitter.accessesPacks() && emitter.body().size() < kMuchText;
  };
  // Lanes over all contiguous dimensions are filled even if the innermost one is short.
  if (!nest.chunks)
    if (NestTasks::Way way = tasks.widened(tasks.overAll(), kPacked); way.groups > 1 && isGood(way))
      return way;
  NestTasks::Way way = tasks.widened(plan.way, kPacked / int64_t(nest.chunks ? nest.chunks->carried.size() : 1));
  while (way.groups > 1 && !isGood(way))
    way.groups /= 2;
  return way;
}

LogicalResult GridWriter::write(const LoopNest &nest) {
  FailureOr<Plan> plan = choose(nest);
  if (failed(plan))
    return failure();
  NestTasks tasks = tasksOf(nest, *plan);
  NestTasks::Way way = widened(nest, *plan, tasks);
  tasks.take(way);
  ThreadEmitter emitter = emitterOf(nest, *plan, way);
  if (failed(tasks.emit(emitter, emitter.task(), /*keep=*/true)))
    return failure();
  if (KeptLoads repeated = emitter.repeatedLoads(); nest.folds && !repeated.empty()) {
    ThreadEmitter again = emitterOf(nest, *plan, way);
    again.keep(std::move(repeated));
    if (failed(tasks.emit(again, again.task(), /*keep=*/false))) // the choice is final
      return failure();
    kernel.text += again.kernel(nest.name, buffers);
  } else {
    kernel.text += emitter.kernel(nest.name, buffers);
  }
  kernel.functions.push_back({nest.name, tasks.tasks(), tasks.rowsPerTask(), plan->group.threads});
  kernel.lanes = std::min(kernel.lanes, tasks.filledLanes());
  return success();
}

FailureOr<GridKernel> writeGridKernel(ir::KernelOp kernel, StringRef name, int64_t capacity,
                                      const GridOptions &options) {
  GridWriter writer(kernel.getNumOperands() + kernel.getNumResults() + 1, capacity);
  std::optional<LogicalResult> attention = writeAttentionKernel(kernel, name, capacity, options, writer.kernel);
  if (attention) {
    if (failed(*attention))
      return failure();
    return std::move(writer.kernel);
  }
  if (std::optional<LogicalResult> product =
          writeProductKernel(kernel, name, capacity, options, writer, writer.kernel)) {
    if (failed(*product))
      return failure();
    return std::move(writer.kernel);
  }
  if (writeScatterKernel(kernel, name, capacity, writer.kernel) ||
      writeTransposeKernel(kernel, name, capacity, writer.kernel))
    return std::move(writer.kernel);
  FailureOr<int64_t> workspaceBytes = writeLoopKernel(kernel, name, capacity, writer);
  if (failed(workspaceBytes))
    return failure();
  writer.kernel.workspaceBytes = *workspaceBytes;
  return std::move(writer.kernel);
}

LogicalResult addActivation(ir::KernelOp kernel, StringRef name, int64_t capacity, GridKernel &into) {
  GridWriter writer(kernel.getNumOperands() + kernel.getNumResults() + 1, capacity);
  if (failed(writeActivation(kernel, name, writer)))
    return failure();
  into.text += writer.kernel.text;
  for (GridFunction &function : writer.kernel.functions) {
    function.followsLibrary = FollowsLibrary::ForActivation;
    into.functions.push_back(function);
  }
  return success();
}

} // namespace sluice::cuda
