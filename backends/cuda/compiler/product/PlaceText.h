// CUDA C++ source for the addresses of a tile's elements, and for the conditions under which elements exist.
//
// Variables of the source: `element` is an index of the batch, `at` the index of a row or column in the result,
// `number` the step of a summed index, and `depth` its position in the step. If steps do not begin at multiples of
// their length, `begin` is the first summed index of the chunk. Values that all indices of a step share are computed
// once.
//
// An element of an operand exists if `absent & asked` is 0. `absent` belongs to a row or column. It has a bit for each
// position along a summed dimension, for example of a filter, at which the element is padding. `asked` belongs to a
// summed index, and has the bits of its positions. In addition, `absent` of a row that does not exist has a bit that
// every `asked` has, and `asked` of a summed index that does not exist has a bit that every `absent` has.
#pragma once

#include "backends/cuda/compiler/product/TiledProduct.h"
#include <string>
#include <vector>

namespace sluice::cuda {

class PlaceText {
public:
  explicit PlaceText(const TiledProduct &product);

  /// The value of `number` in step `step` of a block, whose first step is 0.
  std::string numberOf(const std::string &step) const;
  /// The type that holds both parts of an index and their sum: "int" or "Index".
  const char *typeFor(const Parts &parts) const;
  /// The whole index.
  std::string of(mlir::AffineExpr index) const;
  /// The terms of the index without `number`, which are the same in each step; and its constant and other terms.
  std::string ofDepth(mlir::AffineExpr index) const { return partOf(index, /*ofDepth=*/true); }
  std::string ofStep(mlir::AffineExpr index) const { return partOf(index, /*ofDepth=*/false); }

  /// Statements that set `absent` of the row or column `at`, of which there are `count`.
  std::string setAbsent(const TileOperand &operand, const std::string &absent, const std::string &count,
                        const std::string &indent) const;
  /// The value of `asked`.
  std::string asked() const;
  /// The conditions of the operand that have no bits, and are evaluated by comparisons instead.
  llvm::SmallVector<Bounded> compared(const TileOperand &operand) const;
  /// The condition that an index is within its bounds; `side` and `depth` are the sources of its two parts.
  std::string isWithin(const Bounded &bounded, const std::string &side, const std::string &depth) const;

private:
  struct Positions {
    const loops::Product::Dim *dim;
    unsigned firstBit;
  };

  mlir::AffineExpr addVariable(const char *name, int64_t size);
  std::string textOf(mlir::AffineExpr index) const;
  std::string partOf(mlir::AffineExpr index, bool ofDepth) const;
  void giveBits();
  const Positions *positionsOf(const Bounded &bounded) const;

  const TiledProduct &p;
  loops::IndexSpace space;
  std::vector<std::string> names; // of the space's variables
  mlir::AffineExpr number, place;
  llvm::SmallVector<mlir::AffineExpr> inTile; // the expression of each dimension of the product
  llvm::SmallVector<Positions> positions;
};

} // namespace sluice::cuda
