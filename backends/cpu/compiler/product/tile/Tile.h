// The register tile: `rows` x `columns` sums kept in vectors, and the steps that add to them.
#pragma once

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"

#include <cstdint>

namespace sluice::cpu {

// How many steps ahead B is fetched where it does not stay in the first-level cache.
constexpr int64_t prefetchSteps = 6;

// The sums of a tile, row by row, vector by vector.
using Sums = llvm::SmallVector<mlir::Value, 32>;

class Tile {
public:
  // `wholeVectors`: B may be read beyond `columns`, up to the end of the last vector (panels are padded).
  Tile(mlir::Location loc, mlir::VectorType type, int64_t rows, int64_t columns, bool wholeVectors);

  int64_t rows() const { return numRows; }
  int64_t vectors() const { return numVectors; }
  int64_t lanesOf(int64_t vector) const; // elements of C in this vector
  mlir::VectorType type() const { return vectorType; }

  Sums zeros(mlir::OpBuilder &b) const;

  // Whole vectors at base + row * rowStride; used for partial sums in the workspace.
  Sums load(mlir::OpBuilder &b, mlir::Value base, int64_t rowStride) const;
  void store(mlir::OpBuilder &b, const Sums &sums, mlir::Value base, int64_t rowStride) const;

  // Each step also fetches the row of B that is this many elements further on into the first-level cache; 0: none.
  void prefetchB(int64_t distance) { ahead = distance; }

  // sums[r, :] += A[r] * B[:]. A null address leaves its row as it is.
  void multiplyAdd(mlir::OpBuilder &b, Sums &sums, llvm::ArrayRef<mlir::Value> aAddresses, mlir::Value bAddress) const;

private:
  mlir::Location loc;
  mlir::VectorType vectorType;
  int64_t numRows, numVectors, columns;
  bool wholeVectors;
  int64_t ahead = 0;
};

// for i in [lower, upper) step `step`: `body` replaces the sums.
Sums accumulateOver(mlir::OpBuilder &b, mlir::Location loc, mlir::Value lower, mlir::Value upper, int64_t step,
                    Sums sums, llvm::function_ref<void(mlir::OpBuilder &, mlir::Value i, Sums &)> body);

// The same over [0, count), unrolled by `unroll`; `body` gets i as a value plus a constant.
Sums accumulateOver(mlir::OpBuilder &b, mlir::Location loc, int64_t count, int64_t unroll, Sums sums,
                    llvm::function_ref<void(mlir::OpBuilder &, mlir::Value i, int64_t plus, Sums &)> body);

// Sums of more terms than this are added up from sums of so many: a running sum's rounding errors grow with its length.
constexpr int64_t termsPerSum = 512;

// The terms of each such part, but the last one's, of a sum of `count`.
int64_t termsOfPart(int64_t count);

// Adds what `terms` makes of zeros.
Sums addApart(mlir::OpBuilder &b, mlir::Location loc, const Tile &tile, Sums sums,
              llvm::function_ref<Sums(mlir::OpBuilder &, Sums zeros)> terms);

// accumulateOver, each `termsPerSum` steps apart. Where the parts end follows from the bounds alone, never from
// `unroll`: tiles of any size make the same sums.
Sums accumulateInParts(mlir::OpBuilder &b, mlir::Location loc, const Tile &tile, mlir::Value lower, mlir::Value upper,
                       Sums sums, llvm::function_ref<void(mlir::OpBuilder &, mlir::Value i, Sums &)> body);
Sums accumulateInParts(mlir::OpBuilder &b, mlir::Location loc, const Tile &tile, int64_t count, int64_t unroll,
                       Sums sums,
                       llvm::function_ref<void(mlir::OpBuilder &, mlir::Value i, int64_t plus, Sums &)> body);

// A loop without sums.
void loopOver(mlir::OpBuilder &b, mlir::Location loc, mlir::Value lower, mlir::Value upper, int64_t step,
              llvm::function_ref<void(mlir::OpBuilder &, mlir::Value i)> body);
void ifThen(mlir::OpBuilder &b, mlir::Location loc, mlir::Value condition,
            llvm::function_ref<void(mlir::OpBuilder &)> body);
void ifThenElse(mlir::OpBuilder &b, mlir::Location loc, mlir::Value condition,
                llvm::function_ref<void(mlir::OpBuilder &)> then,
                llvm::function_ref<void(mlir::OpBuilder &)> otherwise);

// The same address, but LLVM does not know it. Without this, overlapping windows in unrolled code share their
// broadcasts, which then live too long and push sums out of the registers.
mlir::Value launder(mlir::OpBuilder &b, mlir::Location loc, mlir::Value address);

} // namespace sluice::cpu
