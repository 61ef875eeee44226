#include "backends/cuda/compiler/GridKernel.h"

#include "backends/cuda/compiler/ProductKernel.h"
#include "backends/cuda/compiler/ThreadEmitter.h"
#include "backends/loops/LoopKernel.h"
#include "backends/loops/NestTasks.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include <algorithm>

namespace sluice::cuda {

using namespace mlir;
using namespace loops;

// Few loads of a warp: tasks are many, and hide each other's latency.
static constexpr double kBytesPerTask = 4 << 10;
// Fewer warps than that take no less time.
static constexpr int64_t kWarpsAtOnce = 2048;
// Elements of a warp that lie side by side, where nothing is folded: 16 bytes a thread.
static constexpr int64_t kPacked = 128;

namespace {

class GridWriter : public NestWriter {
public:
  GridWriter(int64_t buffers, int64_t capacity) : buffers(buffers), capacity(capacity) {}

  int64_t lanes() const final { return kWarp; }
  int64_t elementsPerChunk() const final { return 32 << 10; }
  int64_t wantedTasks() const final { return kWarpsAtOnce; }
  int64_t elementsAtOnce() const final { return kWarp; }
  LogicalResult write(const LoopNest &nest) final;

  GridKernel kernel;

private:
  int64_t buffers, capacity;
};

} // namespace

LogicalResult GridWriter::write(const LoopNest &nest) {
  NestTasks tasks(nest, kWarp, kBytesPerTask, kWarpsAtOnce, capacity);
  auto emitterFor = [&](NestTasks::Way way) {
    tasks.take(way);
    return ThreadEmitter(nest.space.getContext(), {kWarp, way.groups});
  };
  FailureOr<NestTasks::Way> way = tasks.choose([&](NestTasks::Way one) {
    ThreadEmitter emitter = emitterFor(one);
    FailureOr<NestTasks::Weight> weight = tasks.emit(emitter, emitter.task(), /*keep=*/false);
    if (succeeded(weight))
      weight->cost += emitter.cost() * double(std::max(tasks.tasksAtCapacity(), kWarpsAtOnce));
    return weight;
  });
  if (failed(way))
    return failure();
  ThreadEmitter emitter = emitterFor(nest.folds ? *way : tasks.widened(*way, kPacked));
  if (failed(tasks.emit(emitter, emitter.task(), /*keep=*/true)))
    return failure();
  kernel.text += emitter.kernel(nest.name, buffers);
  kernel.functions.push_back({nest.name, tasks.tasks(), tasks.rowsPerTask()});
  kernel.lanes = std::min(kernel.lanes, tasks.filledLanes());
  return success();
}

FailureOr<GridKernel> writeGridKernel(ir::KernelOp kernel, StringRef name, int64_t capacity,
                                      const GridOptions &options) {
  kernel.getContext()->loadDialect<arith::ArithDialect, math::MathDialect>(); // of what ops mean
  GridWriter writer(kernel.getNumOperands() + kernel.getNumResults() + 1, capacity);
  if (std::optional<LogicalResult> product =
          writeProductKernel(kernel, name, capacity, options, writer, writer.kernel)) {
    if (failed(*product))
      return failure();
    return std::move(writer.kernel);
  }
  FailureOr<int64_t> workspaceBytes = writeLoopKernel(kernel, name, capacity, writer);
  if (failed(workspaceBytes))
    return failure();
  writer.kernel.workspaceBytes = *workspaceBytes;
  return std::move(writer.kernel);
}

} // namespace sluice::cuda
