#include "backends/cpu/compiler/loops/LoopNest.h"

#include "backends/cpu/compiler/loops/LaneEmitter.h"
#include "backends/cpu/compiler/loops/NestCost.h"
#include "backends/loops/NestTasks.h"

namespace sluice::cpu {

using namespace mlir;
using namespace loops;

// What one task reads and writes: it stays in the second-level cache, and outweighs handing out the task.
static constexpr double kBytesPerTask = 64 << 10;
// Of the rows that a walk down columns passes, each lies in another page: some cache lines of it are taken at once.
static constexpr int64_t kColumns = 128;

namespace {

/// Writes a nest in one way after another, and keeps the best.
class WayChoice {
public:
  WayChoice(const LoopNest &nest, ModuleOp module, const Target &target, int64_t capacity)
      : nest(nest), module(module), lanes(lanesOf(target)), tasks(nest, lanes, kBytesPerTask, capacity) {}

  FailureOr<EmittedNest> run();

private:
  /// What was found of the way emitted last.
  struct Found {
    double cost = 0;
    bool failed = false, foldsAgain = false;
  };

  Found emit(NestTasks::Way way, bool keep);
  LogicalResult weigh(NestTasks::Way way);
  LogicalResult choose();

  const LoopNest &nest;
  ModuleOp module;
  int64_t lanes;
  NestTasks tasks;
  NestTasks::Way best = {0, 0};
  double least = INFINITY;
  Found last;
};

} // namespace

WayChoice::Found WayChoice::emit(NestTasks::Way way, bool keep) {
  Found found;
  tasks.take(way);
  StageFunction stage = StageFunction::create(module, nest.name, nest.loc);
  stage.forEachTask([&](OpBuilder &b, Value task) {
    LaneEmitter emitter(b, nest.loc, stage, tasks.lanes(), lanes);
    tasks.emit(emitter, LaneEmitter::handleOf<Count>(task), [&](Elements &elements) {
      found.failed = elements.hasFailed();
      found.foldsAgain = elements.foldsAgain();
      found.cost = elements.hasTooManyLanes() ? INFINITY : nest.penalty ? nest.penalty(elements) : 0;
      if (keep && nest.chosen)
        nest.chosen(elements);
    });
  });
  found.cost += costOf(stage.func) * double(tasks.tasksAtCapacity());
  return found;
}

LogicalResult WayChoice::weigh(NestTasks::Way way) {
  last = emit(way, /*keep=*/false);
  module.lookupSymbol(nest.name)->erase();
  if (!last.failed && last.cost < least) {
    least = last.cost;
    best = way;
  }
  return failure(last.failed);
}

LogicalResult WayChoice::choose() {
  SmallVector<NestTasks::Way> ways = tasks.ways();
  best = ways[0];
  if (ways.size() == 1)
    return success();
  bool foldsAgain = false;
  for (NestTasks::Way way : ways) {
    if (failed(weigh(way)))
      return failure();
    foldsAgain |= last.foldsAgain;
  }
  if (!foldsAgain)
    return success();
  for (size_t from : tasks.columns())
    for (NestTasks::Way way : tasks.waysDownColumns(from)) {
      if (failed(weigh(way)))
        return failure();
      if (!last.foldsAgain) // further out the columns would only be further apart
        break;
    }
  if (best.at == best.from)
    return success();
  least = INFINITY; // what is wider is better, if it can be
  return weigh(tasks.widened(best, kColumns));
}

FailureOr<EmittedNest> WayChoice::run() {
  if (failed(choose()) || emit(best, /*keep=*/true).failed)
    return failure();
  return EmittedNest{{nest.name, tasks.tasks(), tasks.rowsPerTask()}, tasks.filledLanes()};
}

FailureOr<EmittedNest> emitLoopNest(const LoopNest &nest, ModuleOp module, const Target &target, int64_t capacity) {
  return WayChoice(nest, module, target, capacity).run();
}

} // namespace sluice::cpu
