// How a matrix product is split into tasks, blocks and tiles, and which operands are copied; see Matmul.cpp.
#pragma once

#include "backends/cpu/compiler/product/Contraction.h"
#include "backends/cpu/compiler/product/matmul/PackPanels.h"
#include "backends/cpu/compiler/product/matmul/SumPartials.h"
#include "backends/cpu/compiler/product/tile/TileChoice.h"

#include <optional>

namespace sluice::cpu {

class MatmulPlan {
public:
  // Both must outlive the plan.
  MatmulPlan(const Matmul &op, const Target &target);

  // The preceding stage that packs B.
  PackPanels packStage() const;
  // Rows or columns of every tile of a block except the last.
  int64_t tileRows() const;
  // The number of them whose terms, or the terms of one part, fit in a quarter of the second-level cache.
  int64_t fittingRows() const;
  // The rows of a block that are computed together: all, unless their sums would not fit on the stack.
  int64_t rowsAtOnce() const;
  // The number of rows that remain after tiles of `rows` rows, in the last block of C or of a row of the call. Nothing if
  // it depends on the task.
  std::optional<int64_t> rest(int64_t rows) const;
  // Whether the last tiles of that block have `rows` - 1 rows, so that no small tile remains, whose few sums would wait
  // for each other. `vectors`: of a tile.
  bool hasShortTiles(int64_t rows, int64_t vectors) const;
  // Sets the work of the product.
  void describe(Contraction &result) const;

  ColumnGroups groups;
  int64_t panelOfB = 0;         // width of the panels that the product stage reads; 0: it reads B's rows
  bool packed = false;          // by a preceding stage
  bool packsParts = false;      // by each task
  bool splitK = false;          // k is cut into chunks, each summed by separate tasks
  bool inParts = false;         // a task sums one part of k after another
  bool copiesA = false;         // and copies the rows of A's terms
  int64_t terms = 0;            // of such a part
  bool prefetchesC = false;     // results are prefetched: they exceed the second-level cache
  int64_t stepsPerPrefetch = 0; // of a row of the next columns of B; 0: they are not prefetched
  int64_t rowsOfBlock = 1, staticBlocksOfM = 1, groupsOfTask = 1;
  int64_t tasks = 1, rowsPerTask = 0; // of the product stage
  bool rowsInner = false;             // consecutive tasks have the same columns, and different rows
  Partials partials;
  int64_t workspaceBytes = 0;

private:
  void planPacking();
  void planBlocks();
  void planTasks();
  void planSplit();
  void planPrefetches();
  void cutRows(int64_t columnTasks);
  std::optional<int64_t> knownRows() const;
  bool rowsOfBEvictEachOther() const;
  bool readsBAgain() const;
  bool hasRowsInner() const;
  bool canSumInParts() const;
  bool termsOfAAreRows() const;
  int64_t wantedTasks() const;
  int64_t rowsFor(int64_t wanted) const;
  int64_t chunksOfK() const;

  const Matmul &op;
  const Target &target;
  int64_t lanes, chunks = 1;
};

} // namespace sluice::cpu
