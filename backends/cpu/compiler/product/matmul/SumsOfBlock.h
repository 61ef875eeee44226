// Sums of a block of C that are made of one part of k after another: between the parts they are kept on the stack, beside
// copies of the part of A and of B that tiles are computed from, where these lie apart in memory. So the part stays in the
// cache while all tiles of the block use it, however long k is and however far apart its terms lie.
#pragma once

#include "backends/cpu/compiler/machine/StageFunction.h"
#include "backends/cpu/compiler/product/matmul/PackPanels.h"
#include "backends/cpu/compiler/product/tile/Tile.h"

namespace sluice::cpu {

class SumsOfBlock {
public:
  // Of at most `rows` x `columns` sums.
  SumsOfBlock(StageFunction &stage, mlir::Location loc, mlir::VectorType vector, int64_t rows, int64_t columns);

  // Makes room for copies of `terms` terms of A, or of B for `width` columns at a time.
  void makeRoomForA(StageFunction &stage, int64_t terms);
  void makeRoomForB(StageFunction &stage, int64_t terms, int64_t width);

  // Sets the sums of the first `rows` rows to zero.
  void clear(mlir::OpBuilder &b, mlir::Value rows);
  // Copies `terms` times `rows` neighbours, the first of which are at `from`, and each next ones `stride` elements further on.
  void copyA(mlir::OpBuilder &b, mlir::Value from, int64_t stride, mlir::Value terms, mlir::Value rows);
  // What was copied for row `row` as its term `term`; those of the next rows follow.
  mlir::Value addressOfA(mlir::OpBuilder &b, mlir::Value term, mlir::Value row) const;
  // The same of B. Gives where the copy is: rows of `width` elements, in whole vectors.
  mlir::Value copyB(mlir::OpBuilder &b, mlir::Value from, int64_t stride, mlir::Value terms, int64_t columns);
  // Adds a tile that begins at a row and a column.
  void add(mlir::OpBuilder &b, const Tile &tile, const Sums &sums, mlir::Value row, mlir::Value column);
  // The same of B where it is another matrix's transpose: `source` is where the first column begins, and `first` the first term.
  mlir::Value packB(mlir::OpBuilder &b, const PackPanels &pack, mlir::Value source, mlir::Value first,
                    mlir::Value terms, int64_t columns);
  // The vector of sums at a row and a column.
  mlir::Value load(mlir::OpBuilder &b, mlir::Value row, mlir::Value column) const;

private:
  mlir::Value onStack(StageFunction &stage, int64_t elements) const;
  mlir::Value addressOfSums(mlir::OpBuilder &b, mlir::Value row, mlir::Value column) const;

  mlir::Location loc;
  mlir::VectorType vector;
  int64_t lanes, strideOfA, strideOfB = 0, strideOfSums;
  mlir::Value copyOfA, copyOfB, sums;
};

} // namespace sluice::cpu
