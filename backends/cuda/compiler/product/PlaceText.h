// Source for the addresses of a tile's elements and for which of them exist.
//
// Variables: `element` is an index of the batch, `at` the index of a row or column in the result, `number` the step of
// a summed index, and `depth` its position in the step. Values that all indices of a step share are computed once.
//
// Bit masks determine which elements exist. In `absent`, a row or column has a bit for each position along a summed
// dimension, for example of a filter, at which its element is padding. In `asked`, a summed index has the bits of its
// positions. In addition, a row that does not exist has a bit that all summed indices test, and a summed index that
// does not exist tests a bit that all rows have.
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
  /// The two parts of an index, and their sum.
  const char *typeFor(const Parts &parts) const;
  std::string of(mlir::AffineExpr index) const;
  /// The part that depends on the summed index, the part that depends on `depth` alone, and the rest.
  std::string ofDepth(mlir::AffineExpr index) const { return partOf(index, /*ofDepth=*/true); }
  std::string ofStep(mlir::AffineExpr index) const { return partOf(index, /*ofDepth=*/false); }

  /// Statements that set `absent` of the row or column `at`, of which there are `count`.
  std::string setAbsent(const TileOperand &operand, const std::string &absent, const std::string &count,
                        const std::string &indent) const;
  std::string asked() const;
  /// Conditions without bits: they are compared.
  llvm::SmallVector<Bounded> compared(const TileOperand &operand) const;
  /// An index whose parts have this source.
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
