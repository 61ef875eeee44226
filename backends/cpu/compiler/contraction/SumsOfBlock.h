// Sums of a block of C that are made of one part of k after another: between the parts they are kept on the stack, beside a
// copy of the part of A and of B that tiles are computed from. So these stay in the cache while all tiles of the block use
// them, however long k is and however far apart its terms lie.
#pragma once

#include "backends/cpu/compiler/StageFunction.h"
#include "backends/cpu/compiler/contraction/Tile.h"

namespace sluice::cpu {

// The terms of a part: of sums this long, the partial ones are added up.
constexpr int64_t termsPerPart = 256;

class SumsOfBlock {
public:
  // Of at most `rows` x `columns` sums; B's columns are copied for `width` of them at a time.
  SumsOfBlock(StageFunction &stage, mlir::Location loc, mlir::VectorType vector, int64_t rows, int64_t columns,
              int64_t width);

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
  // The vector of sums at a row and a column.
  mlir::Value load(mlir::OpBuilder &b, mlir::Value row, mlir::Value column) const;

private:
  mlir::Value onStack(StageFunction &stage, int64_t elements) const;
  mlir::Value addressOfSums(mlir::OpBuilder &b, mlir::Value row, mlir::Value column) const;

  mlir::Location loc;
  mlir::VectorType vector;
  int64_t lanes, strideOfA, strideOfB, strideOfSums;
  mlir::Value copyOfA, copyOfB, sums;
};

} // namespace sluice::cpu
