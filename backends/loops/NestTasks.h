// Maps a nest to lanes, splits it into tasks, and emits one task. Backends differ in the unit that runs a task (a
// thread of the host, a warp), in its number of lanes, and in the best mapping.
//
// Lanes are over the innermost dimension, over several contiguous dimensions together, or over none (if the contiguous
// dimension is folded). Values do not depend on the mapping, except for sums in lanes if a thread has several. Adjacent
// tiles are one dimension, and the padding of the last one is not written.
#pragma once

#include "backends/loops/LoopNest.h"
#include "ir/Layout.h"
#include <optional>

namespace sluice::loops {

class NestTasks {
public:
  /// A mapping to lanes. Lanes are over dims [from, end), without the last `inner` ones. Their loop is inside of dims
  /// [0, at) and around dims [at, from) and the `inner` ones; `at` equals `from` unless loops go down columns. `groups`
  /// groups of lanes are computed together. A dim is a physical dimension larger than 1, or the chunks or parts.
  struct Way {
    size_t from, at;
    int64_t groups = 1;
    size_t inner = 0;
  };

  /// Lanes come in groups of `lanes`. A task reads and writes about `bytesPerTask`. If the nest folds, it is split only
  /// until there are `enoughTasks`, because tasks that share a fold would each repeat it.
  NestTasks(const LoopNest &nest, int64_t lanes, double bytesPerTask, int64_t enoughTasks, int64_t capacity);

  struct Weight {
    double cost = 0;
    bool foldsAgain = false;  ///< whether a loop repeats the same fold in each trip
    bool foldsAcross = false; ///< whether any fold goes across lanes
    int64_t termsAlong = 0;   ///< of the longest fold along lanes
  };
  /// The cheapest mapping by `weigh`, which is not called if there is only one mapping.
  mlir::FailureOr<Way> choose(llvm::function_ref<mlir::FailureOr<Weight>(Way)> weigh) const;
  /// The mapping with lanes over all contiguous dimensions of known size.
  Way overAll() const { return {firstStatic(), firstStatic()}; }
  /// The mapping with lanes over all of those dimensions but the innermost one, for results that are permuted operands:
  /// pixels with a few channels from images of one channel each. None if the innermost one fills the lanes, or if the
  /// order of sums follows from the lanes.
  std::optional<Way> aroundInnermost() const;
  /// The same mapping with more lanes, at most `most`, unless more than a quarter of them would be idle.
  Way widened(Way way, int64_t most) const;

  /// Selects the mapping that the members below use.
  void take(Way way);
  int64_t lanes() const { return lanes_; }
  /// There are `tasks()` tasks, for each `rowsPerTask()` rows if that is not 0.
  int64_t tasks() const { return tasks_; }
  int64_t rowsPerTask() const { return rowsPerTask_; }
  int64_t tasksAtCapacity() const;
  /// The share of active lanes.
  double filledLanes() const;

  /// Emits a task; a trial unless `keep`. Returns the weight, without the cost of the emitted code. The weight's cost
  /// is INFINITY if the nest does not support the mapping.
  mlir::FailureOr<Weight> emit(Emitter &emitter, Count task, bool keep);

private:
  /// One dimension of the loops.
  struct Dim {
    int64_t physical; // -1: the chunks or parts
    int64_t extent;   // at capacity
    bool rows;        // iterates over the call's rows (or their chunks)
    // Tasks split it into `blocks` blocks of `block` units. A unit is an index or, in the dimension of lanes, a group.
    int64_t block = 0, blocks = 1;
  };
  /// A loop over a part of a dimension. Its index is `first` plus the loop's number, which runs from `begin` to `end`.
  struct Part {
    mlir::AffineExpr first;
    Interval range; // of the number
    Count begin, end;
    int64_t trips; // at capacity
  };
  /// A task being emitted.
  struct Task;

  void joinTiles();
  llvm::SmallVector<Way> ways() const;
  llvm::SmallVector<Way> waysDownColumns(size_t from) const;
  void cutIntoTasks();
  void placeTask(Task &t, Count task);
  size_t firstStatic() const;
  int64_t extentFrom(size_t dim) const;
  /// The end of the dimensions of lanes.
  size_t endOfLanes() const { return dims.size() - way.inner; }
  llvm::SmallVector<Interval> intervalsOf(size_t dim) const;
  Part partOf(Task &t, size_t dim, Interval interval);
  void forEach(Task &t, const Part &part, llvm::function_ref<void(mlir::AffineExpr)> inside);
  void emitDims(Task &t, size_t dim, size_t last, llvm::function_ref<void()> inside);
  void emitColumns(Task &t);
  void emitLanes(Task &t);
  void emitRowLanes(Task &t);
  void emitBody(Task &t);
  void placeLanes(Task &t, mlir::AffineExpr flat);
  mlir::AffineExpr constantIndex(int64_t value) const;
  bool lanesOverRows() const { return way.from == 0 && !dims.empty() && dims[0].rows; }

  const LoopNest &nest;
  int64_t lanesOfGroup, enoughTasks, capacity;
  double bytesPerTask;
  llvm::SmallVector<ir::PhysicalDim> physical; // of the nest's space
  llvm::SmallVector<int64_t> shape;            // with padding
  llvm::SmallVector<Dim> dims;

  Way way = {0, 0};
  int64_t lanes_ = 0, laneExtent = 1, tasks_ = 1, rowsPerTask_ = 0;
};

} // namespace sluice::loops
