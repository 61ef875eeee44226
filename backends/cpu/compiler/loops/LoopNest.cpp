#include "backends/cpu/compiler/loops/LoopNest.h"

#include "backends/cpu/compiler/loops/LaneEmitter.h"
#include "backends/cpu/compiler/loops/NestCost.h"
#include "backends/loops/NestTasks.h"

namespace sluice::cpu {

using namespace mlir;
using namespace loops;

// Bytes read and written by one task: they fit in the second-level cache, and outweigh the overhead of a task.
static constexpr double kBytesPerTask = 64 << 10;
// Four tasks for each of sixteen threads, so that all finish at about the same time.
static constexpr int64_t kEnoughTasks = 64;

namespace {

/// Generates a nest with each mapping to lanes, and keeps the best.
class NestEmission {
public:
  NestEmission(const LoopNest &nest, ModuleOp module, const Target &target, int64_t capacity)
      : nest(nest), module(module), lanes(lanesOf(target)), tasks(nest, lanes, kBytesPerTask, kEnoughTasks, capacity) {}

  FailureOr<EmittedNest> run();

private:
  FailureOr<NestTasks::Weight> emit(NestTasks::Way way, bool keep);
  FailureOr<NestTasks::Weight> weigh(NestTasks::Way way);

  const LoopNest &nest;
  ModuleOp module;
  int64_t lanes;
  NestTasks tasks;
};

} // namespace

FailureOr<NestTasks::Weight> NestEmission::emit(NestTasks::Way way, bool keep) {
  FailureOr<NestTasks::Weight> weight = failure();
  tasks.take(way);
  StageFunction stage = StageFunction::create(module, nest.name, nest.loc);
  stage.forEachTask([&](OpBuilder &b, Value task) {
    LaneEmitter emitter(b, nest.loc, stage, tasks.lanes(), lanes);
    weight = tasks.emit(emitter, LaneEmitter::handleOf<Count>(task), keep);
  });
  if (succeeded(weight))
    weight->cost += costOf(stage.func) * double(tasks.tasksAtCapacity());
  return weight;
}

FailureOr<NestTasks::Weight> NestEmission::weigh(NestTasks::Way way) {
  FailureOr<NestTasks::Weight> weight = emit(way, /*keep=*/false);
  module.lookupSymbol(nest.name)->erase();
  return weight;
}

FailureOr<EmittedNest> NestEmission::run() {
  FailureOr<NestTasks::Way> way = tasks.choose([&](NestTasks::Way one) { return weigh(one); });
  if (failed(way))
    return failure();
  if (std::optional<NestTasks::Way> around = tasks.aroundInnermost()) {
    FailureOr<NestTasks::Weight> best = weigh(*way), its = weigh(*around);
    if (failed(best) || failed(its))
      return failure();
    if (its->cost < best->cost)
      way = *around;
  }
  bool goesDownColumns = way->at < way->from;
  if (goesDownColumns || nest.body || nest.chunks) {
    NestTasks::Way wide = tasks.widened(*way, kColumns);
    FailureOr<NestTasks::Weight> weight = weigh(wide);
    if (failed(weight))
      return failure();
    if (weight->cost < INFINITY && (goesDownColumns || nest.body || weight->foldsAcross))
      way = wide;
  }
  if (failed(emit(*way, /*keep=*/true)))
    return failure();
  return EmittedNest{{nest.name, tasks.tasks(), tasks.rowsPerTask()}, tasks.filledLanes()};
}

FailureOr<EmittedNest> emitLoopNest(const LoopNest &nest, ModuleOp module, const Target &target, int64_t capacity) {
  return NestEmission(nest, module, target, capacity).run();
}

} // namespace sluice::cpu
