// A nest on lanes: how it is cut into tasks, and the code of one of them. Backends differ in what runs a task (a thread
// of the host, a warp), in how many lanes it has, and in which way suits it best.
//
// The ways to lay lanes: over the innermost dimension, over several that are contiguous taken together, or over none
// (where what is contiguous is folded). Values do not depend on the way, but for sums in lanes of which a thread has several.
// Tiles that follow each other are one dimension, and what pads the last is not written.
#pragma once

#include "backends/loops/LoopNest.h"
#include "ir/Layout.h"

namespace sluice::loops {

class NestTasks {
public:
  /// Lanes are over dims [from, end), in a loop inside of dims [0, at) and around dims [at, from); so many groups of
  /// them at once. A dim is a physical dimension larger than 1, or the chunks or parts.
  struct Way {
    size_t from, at;
    int64_t groups = 1;
  };

  /// Lanes come in groups of `lanes`; a task reads and writes some `bytesPerTask`, or more where something is folded and
  /// there are `enoughTasks`: several that share a fold would each do it.
  NestTasks(const LoopNest &nest, int64_t lanes, double bytesPerTask, int64_t enoughTasks, int64_t capacity);

  struct Weight {
    double cost = 0;
    bool foldsAgain = false;  ///< whether the same is folded in each trip of a loop
    bool foldsAcross = false; ///< whether any fold goes across lanes
    int64_t termsAlong = 0;   ///< of the longest fold along lanes
  };
  /// The way that costs least by `weigh`, which is not asked where there is one way only.
  mlir::FailureOr<Way> choose(llvm::function_ref<mlir::FailureOr<Weight>(Way)> weigh) const;
  /// With lanes over all that is contiguous, where sizes are known.
  Way overAll() const { return {firstStatic(), firstStatic()}; }
  /// The same way with more lanes, at most `most`, unless more than a quarter of them would then have nothing to do.
  Way widened(Way way, int64_t most) const;

  /// What follows is about this way.
  void take(Way way);
  int64_t lanes() const { return lanes_; }
  /// There are `tasks()` of them, for each `rowsPerTask()` rows if that is not 0.
  int64_t tasks() const { return tasks_; }
  int64_t rowsPerTask() const { return rowsPerTask_; }
  int64_t tasksAtCapacity() const;
  /// The share of lanes that have something to do.
  double filledLanes() const;

  /// Emits a task, for good if `keep`. The weight is without what the emitter's code costs: INFINITY where the nest has no
  /// such way.
  mlir::FailureOr<Weight> emit(Emitter &emitter, Count task, bool keep);

private:
  /// One dimension of the loops.
  struct Dim {
    int64_t physical;              // -1: the chunks or parts
    int64_t extent;                // at capacity
    bool rows;                     // runs over the rows there are (or their chunks)
    int64_t block = 0, blocks = 1; // how tasks cut it: `block` units each (of lanes, in their dimension)
  };
  /// What a loop goes over: `first` and the loop's number.
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
  Part partOf(Task &t, size_t dim, int64_t units);
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
