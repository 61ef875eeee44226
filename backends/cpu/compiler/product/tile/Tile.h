// The register tile: `rows` x `columns` sums in vectors, and the steps that add to them.
#pragma once

#include "backends/cpu/compiler/machine/StageFunction.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"

#include <cstdint>

namespace sluice::cpu {

// Prefetch distance of B in steps, if B does not stay in the first-level cache.
constexpr int64_t prefetchSteps = 6;

// The sums of a tile, row by row, vector by vector.
using Sums = llvm::SmallVector<mlir::Value, 32>;

// A row of B, or its scales, vector by vector.
using Vectors = llvm::SmallVector<mlir::Value, 8>;

class Tile {
public:
  // `wholeVectors`: B may be read beyond `columns`, up to the end of the last vector (panels are padded).
  Tile(mlir::Location loc, mlir::VectorType type, int64_t rows, int64_t columns, bool wholeVectors);

  int64_t rows() const { return numRows; }
  int64_t vectors() const { return numVectors; }
  int64_t lanesOf(int64_t vector) const; // elements of C in this vector
  mlir::VectorType type() const { return vectorType; }

  Sums zeros(mlir::OpBuilder &b) const;

  // Emits `body` for each cache line of the sums, with the row and the first vector of the line. The rows are a loop if
  // there are several.
  void forEachLine(mlir::OpBuilder &b,
                   llvm::function_ref<void(mlir::OpBuilder &, mlir::Value row, int64_t vector)> body) const;

  // Emits `body` for the sums of each row, or of the first `count` rows. With `isLoop`, the rows are a loop, to which
  // the sums are passed in memory.
  void
  forEachRow(mlir::OpBuilder &b, StageFunction &stage, const Sums &sums, bool isLoop, mlir::Value count,
             llvm::function_ref<void(mlir::OpBuilder &, mlir::Value row, llvm::ArrayRef<mlir::Value> sums)> body) const;

  // Whole vectors at base + row * rowStride; used for partial sums in the workspace.
  Sums load(mlir::OpBuilder &b, mlir::Value base, int64_t rowStride) const;
  void store(mlir::OpBuilder &b, const Sums &sums, mlir::Value base, int64_t rowStride) const;

  // B lies in panels of `width` columns, `distance` elements apart. The tile begins with a panel, or ends with or before
  // the one that it begins in.
  void panelsOfB(int64_t width, int64_t distance) { panel = width, panelDistance = distance; }

  // B has elements of type f16 or bf16 in memory, which are widened as they are read. Null: the type of the sums.
  void halvesInB(mlir::Type half) { halfOfB = half; }

  // B has elements in blocks of bytes. Its scales are in panels of the same width, `distance` scales apart.
  void blocksInB(int64_t distance) { hasBlocks = true, scaleDistance = distance; }

  // Each step also prefetches the row of B this many elements later into the first-level cache; 0: none.
  void prefetchB(int64_t distance) { ahead = distance; }

  // Prefetches the row of B at `address` into the second-level cache.
  void prefetchRow(mlir::OpBuilder &b, mlir::Value address) const;

  // The scales of a row of blocks of B, whose first one is at `address`.
  Vectors loadScales(mlir::OpBuilder &b, mlir::Value address) const;

  // A row of B as vectors of the type of the sums. `scales` are those of its blocks, or none.
  Vectors loadB(mlir::OpBuilder &b, mlir::Value address, llvm::ArrayRef<mlir::Value> scales) const;

  // sums[r, :] += A[r] * B[:]. A null address leaves its row unchanged. `scales`: see loadB.
  void multiplyAdd(mlir::OpBuilder &b, Sums &sums, llvm::ArrayRef<mlir::Value> aAddresses, mlir::Value bAddress,
                   llvm::ArrayRef<mlir::Value> scales = {}) const;

private:
  mlir::Location loc;
  mlir::VectorType vectorType;
  int64_t numRows, numVectors, columns;
  bool wholeVectors;
  int64_t panel = 0, panelDistance = 0, scaleDistance = 0, ahead = 0;
  mlir::Type halfOfB;
  bool hasBlocks = false;

  // Of a vector's elements from the first column's, if panels are `distance` apart.
  int64_t offsetInPanels(int64_t vector, int64_t distance) const;
  mlir::Type elementOfB() const; // in memory
};

// for i in [lower, upper) step `step`: `body` replaces the sums.
Sums accumulateOver(mlir::OpBuilder &b, mlir::Location loc, mlir::Value lower, mlir::Value upper, int64_t step,
                    Sums sums, llvm::function_ref<void(mlir::OpBuilder &, mlir::Value i, Sums &)> body);

// The same over [0, count), unrolled by `unroll`; `body` gets i as a value plus a constant.
Sums accumulateOver(mlir::OpBuilder &b, mlir::Location loc, int64_t count, int64_t unroll, Sums sums,
                    llvm::function_ref<void(mlir::OpBuilder &, mlir::Value i, int64_t plus, Sums &)> body);

// Longer sums are split into parts of this many terms, because the rounding error of a running sum grows with its
// length.
constexpr int64_t termsPerSum = 512;

// The number of terms of each part but the last, for a sum of `count` terms.
int64_t termsOfPart(int64_t count);

// Adds the sums that `terms` computes from zeros.
Sums addApart(mlir::OpBuilder &b, mlir::Location loc, const Tile &tile, Sums sums,
              llvm::function_ref<Sums(mlir::OpBuilder &, Sums zeros)> terms);

// accumulateOver in parts of `termsPerSum` steps. The ends of the parts follow from the bounds alone, never from
// `unroll`, so tiles of any size give the same sums.
Sums accumulateInParts(mlir::OpBuilder &b, mlir::Location loc, const Tile &tile, mlir::Value lower, mlir::Value upper,
                       Sums sums, llvm::function_ref<void(mlir::OpBuilder &, mlir::Value i, Sums &)> body);
Sums accumulateInParts(mlir::OpBuilder &b, mlir::Location loc, const Tile &tile, int64_t count, int64_t unroll,
                       Sums sums,
                       llvm::function_ref<void(mlir::OpBuilder &, mlir::Value i, int64_t plus, Sums &)> body);

// Adds `count` terms in parts as above. `terms` adds those from `first` on to the sums.
Sums accumulateParts(mlir::OpBuilder &b, mlir::Location loc, const Tile &tile, int64_t count, Sums sums,
                     llvm::function_ref<Sums(mlir::OpBuilder &, mlir::Value first, int64_t count, Sums)> terms);

// A loop without sums.
void loopOver(mlir::OpBuilder &b, mlir::Location loc, mlir::Value lower, mlir::Value upper, int64_t step,
              llvm::function_ref<void(mlir::OpBuilder &, mlir::Value i)> body);
void ifThen(mlir::OpBuilder &b, mlir::Location loc, mlir::Value condition,
            llvm::function_ref<void(mlir::OpBuilder &)> body);
void ifThenElse(mlir::OpBuilder &b, mlir::Location loc, mlir::Value condition,
                llvm::function_ref<void(mlir::OpBuilder &)> then,
                llvm::function_ref<void(mlir::OpBuilder &)> otherwise);

// The same address, opaque to LLVM. Otherwise LLVM shares broadcasts between overlapping windows of unrolled code, and
// their long live ranges spill the sums.
mlir::Value launder(mlir::OpBuilder &b, mlir::Location loc, mlir::Value address);

} // namespace sluice::cpu
