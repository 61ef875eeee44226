// The register tile of a few columns: `rows` x `columns` sums with lanes along the terms, reduced across lanes at the
// end. It uses whole vectors where the columns are too few to fill one.
#pragma once

#include "backends/cpu/compiler/product/tile/Tile.h"

namespace sluice::cpu {

class DotTile {
public:
  DotTile(mlir::Location loc, mlir::VectorType type, int64_t rows, int64_t columns);

  Sums zeros(mlir::OpBuilder &b) const;

  // sums[r, n] += A[r, k] * B[n, k] for `length` contiguous k: row r of A is at a + r * aStride elements, column n of B
  // at b + n * bStride.
  Sums addRun(mlir::OpBuilder &builder, Sums sums, mlir::Value a, int64_t aStride, mlir::Value b, int64_t bStride,
              int64_t length) const;

  // The sums of one row, one column per lane.
  mlir::Value finish(mlir::OpBuilder &b, const Sums &sums, int64_t row) const;

private:
  mlir::Location loc;
  mlir::VectorType vectorType;
  int64_t numRows, numColumns;
  int64_t copies; // accumulators per sum, used in turn: with few sums, one accumulator would be bound by latency
};

// Rows of a dot tile that fit in registers together with one vector of A and one of each column of B.
int64_t dotTileRows(int64_t columns, int64_t registers);

} // namespace sluice::cpu
