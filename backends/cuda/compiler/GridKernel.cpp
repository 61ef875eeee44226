#include "backends/cuda/compiler/GridKernel.h"

#include "backends/cuda/compiler/ThreadEmitter.h"
#include "backends/loops/LoopKernel.h"
#include "backends/loops/NestTasks.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include <algorithm>
#include <cmath>

namespace sluice::cuda {

using namespace mlir;
using namespace loops;

static constexpr int64_t kWarp = 32;
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
  LogicalResult write(const LoopNest &nest) final;

  GridKernel kernel;

private:
  int64_t buffers, capacity;
};

} // namespace

LogicalResult GridWriter::write(const LoopNest &nest) {
  NestTasks tasks(nest, kWarp, kBytesPerTask, capacity);
  auto emit = [&](NestTasks::Way way, bool keep, NestTasks::Weight &weight) -> FailureOr<std::string> {
    tasks.take(way);
    ThreadEmitter emitter(nest.space.getContext(), {kWarp, way.groups});
    bool hasFailed = false;
    tasks.emit(emitter, emitter.task(), [&](Elements &elements) {
      hasFailed = elements.hasFailed();
      weight.foldsAgain = elements.foldsAgain();
      weight.cost = nest.penalty ? nest.penalty(elements) : 0;
      if (keep && nest.chosen)
        nest.chosen(elements);
    });
    if (hasFailed)
      return failure();
    weight.cost += emitter.cost() * double(std::max(tasks.tasksAtCapacity(), kWarpsAtOnce));
    return keep ? emitter.kernel(nest.name, buffers) : std::string();
  };
  FailureOr<NestTasks::Way> way = tasks.choose([&](NestTasks::Way one) -> FailureOr<NestTasks::Weight> {
    NestTasks::Weight weight;
    if (failed(emit(one, /*keep=*/false, weight)))
      return failure();
    return weight;
  });
  if (failed(way))
    return failure();
  NestTasks::Weight weight;
  FailureOr<std::string> text = emit(nest.folds ? *way : tasks.widened(*way, kPacked), /*keep=*/true, weight);
  if (failed(text))
    return failure();
  kernel.text += *text;
  kernel.functions.push_back({nest.name, tasks.tasks(), tasks.rowsPerTask()});
  return success();
}

FailureOr<GridKernel> writeGridKernel(ir::KernelOp kernel, StringRef name, int64_t capacity) {
  kernel.getContext()->loadDialect<arith::ArithDialect, math::MathDialect>(); // of what ops mean
  GridWriter writer(kernel.getNumOperands() + kernel.getNumResults() + 1, capacity);
  FailureOr<int64_t> workspaceBytes = writeLoopKernel(kernel, name, capacity, writer);
  if (failed(workspaceBytes))
    return failure();
  writer.kernel.workspaceBytes = *workspaceBytes;
  return std::move(writer.kernel);
}

} // namespace sluice::cuda
