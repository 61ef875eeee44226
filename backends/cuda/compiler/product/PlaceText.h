// Where the elements of a tile lie, and which of them exist, as text. An element of the batch is found by `element`, its number, a
// row or column by `at`, its number in the result; a place in the sum by `number`, that of the step which multiplies it, and `depth`, its place in the step, so that what
// all places of a step have in common is found once.
//
// What exists is found by words. A row or column has in `absent` a bit for each position along a dimension of the sum, as those
// of a filter, where it has no element: padding. A place in the sum has in `asked` those of its own positions. Besides, a row
// that is none is absent where all places ask, and a place that is none asks where all rows are absent.
#pragma once

#include "backends/cuda/compiler/product/TiledProduct.h"
#include <string>
#include <vector>

namespace sluice::cuda {

class PlaceText {
public:
  explicit PlaceText(const TiledProduct &product);

  /// `number` in a block's step, of which the first is 0.
  std::string numberOf(const std::string &step) const;
  /// Of both parts of an index, and of their sum.
  const char *typeFor(const Parts &parts) const;
  std::string of(mlir::AffineExpr index) const;
  /// Of what a place in the sum says, what `depth` says alone, and the rest.
  std::string ofDepth(mlir::AffineExpr index) const { return partOf(index, /*ofDepth=*/true); }
  std::string ofStep(mlir::AffineExpr index) const { return partOf(index, /*ofDepth=*/false); }

  /// Statements that set `absent` of the row or column `at`, of which there are `count`.
  std::string setAbsent(const TileOperand &operand, const std::string &absent, const std::string &count,
                        const std::string &indent) const;
  std::string asked() const;
  /// Those that no bits stand for: they are compared.
  llvm::SmallVector<Bounded> compared(const TileOperand &operand) const;
  /// Of an index whose parts have these texts.
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
  llvm::SmallVector<mlir::AffineExpr> inTile; // what stands for each dimension of the product
  llvm::SmallVector<Positions> positions;
};

} // namespace sluice::cuda
