// Sums of a block of C, accumulated over one part of k at a time. Between the parts the sums are kept on the stack. So
// are copies of the current parts of A and B if their elements are far apart in memory. The part stays in the cache
// while all tiles of the block use it, however long k is and however far apart its terms are.
#pragma once

#include "backends/cpu/compiler/machine/StageFunction.h"
#include "backends/cpu/compiler/product/matmul/PackPanels.h"
#include "backends/cpu/compiler/product/tile/Tile.h"

namespace sluice::cpu {

class SumsOfBlock {
public:
  // Maximum `rows` x `columns` sums.
  SumsOfBlock(StageFunction &stage, mlir::Location loc, mlir::VectorType vector, int64_t rows, int64_t columns);

  // Allocates copies of `terms` terms of A for tiles of `tileRows` rows, or of B for `width` columns at a time.
  void makeRoomForA(StageFunction &stage, int64_t terms, int64_t tileRows);
  void makeRoomForB(StageFunction &stage, int64_t terms, int64_t width);

  // Sets the sums of the first `rows` rows to zero.
  void clear(mlir::OpBuilder &b, mlir::Value rows);
  // Copies `terms` times `rows` adjacent elements. The first are at `from`, each following group `stride` elements
  // later. If the last tile is not whole, it has `lastRows` rows.
  void copyA(mlir::OpBuilder &b, mlir::Value from, int64_t stride, mlir::Value terms, mlir::Value rows,
             int64_t lastRows);
  // The copy of term `term` of the first row of a tile, which is `row`. Those of its other rows are next to it, and
  // then the next term of the tile.
  mlir::Value addressOfA(mlir::OpBuilder &b, mlir::Value term, mlir::Value row) const;
  // The same of B. Returns the address of the copy: rows of `width` elements, in whole vectors.
  mlir::Value copyB(mlir::OpBuilder &b, mlir::Value from, int64_t stride, mlir::Value terms, int64_t columns);
  // Same as `copyB`, for a B in blocks of bytes. `row` reads a row of B; `from` is the address of the first term, which
  // is number `first`, and `scales` that of the scales of the first block of B. Rows of both are `stride` apart.
  mlir::Value dequantizeB(mlir::OpBuilder &b, const Tile &row, mlir::Value from, mlir::Value scales, int64_t stride,
                          mlir::Value first, mlir::Value terms);
  // Adds a tile that begins at a row and a column.
  void add(mlir::OpBuilder &b, const Tile &tile, const Sums &sums, mlir::Value row, mlir::Value column);
  // Same as `copyB`, for a B that is the transpose of a matrix in memory: `source` is the address of the first column,
  // `first` the first term.
  mlir::Value packB(mlir::OpBuilder &b, const PackPanels &pack, mlir::Value source, mlir::Value first,
                    mlir::Value terms, int64_t columns);
  // The vector of sums at a row and a column.
  mlir::Value load(mlir::OpBuilder &b, mlir::Value row, mlir::Value column) const;

private:
  mlir::Value addressOfSums(mlir::OpBuilder &b, mlir::Value row, mlir::Value column) const;

  mlir::Location loc;
  mlir::VectorType vector;
  int64_t lanes, mostRows, rowsOfPanel = 0, panelOfA = 0, strideOfB = 0, strideOfSums;
  mlir::Value copyOfA, copyOfB, sums;
};

} // namespace sluice::cpu
