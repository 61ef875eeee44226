// What lies on the stack with items on its lanes: [rows][lanes], a few vectors wide.
#pragma once

#include "backends/cpu/compiler/product/tile/Tile.h"

namespace sluice::cpu {

class LaneTile {
public:
  /// `items` of the lanes are there; the others of the last vector hold zeros.
  LaneTile(mlir::Location loc, mlir::VectorType type, int64_t items)
      : loc(loc), type(type), items(items), vectors((items + type.getNumElements() - 1) / type.getNumElements()) {}

  int64_t numVectors() const { return vectors; }
  int64_t width() const { return vectors * lanes(); }
  int64_t numItems() const { return items; }
  /// The items in a vector.
  int64_t itemsOf(int64_t vector) const { return std::min(lanes(), items - vector * lanes()); }
  mlir::VectorType vectorType() const { return type; }

  Sums load(mlir::OpBuilder &b, mlir::Value tile, mlir::Value row) const;
  void store(mlir::OpBuilder &b, const Sums &sums, mlir::Value tile, mlir::Value row) const;
  Sums splat(mlir::OpBuilder &b, double value) const;
  void fill(mlir::OpBuilder &b, mlir::Value tile, int64_t rows, double value) const;

  /// Contiguous items, one a lane.
  Sums loadItems(mlir::OpBuilder &b, mlir::Value from) const;
  void storeItems(mlir::OpBuilder &b, const Sums &sums, mlir::Value to) const;

  /// A vector of so many elements from the first on, zeros behind them, at an offset in elements; and the other way round.
  using Load = llvm::function_ref<mlir::Value(mlir::OpBuilder &b, mlir::Value offset, int64_t count)>;
  using Store = llvm::function_ref<void(mlir::OpBuilder &b, mlir::Value vector, mlir::Value offset)>;
  /// tile[e][item] = the element e of the item, whose elements are contiguous and `stride` apart from those of the next.
  void transposeIn(mlir::OpBuilder &b, mlir::Value tile, int64_t elements, int64_t stride, Load load) const;
  void transposeOut(mlir::OpBuilder &b, mlir::Value tile, int64_t elements, int64_t stride, Store store) const;

  /// sums[r][:] += over `steps` of a[r * rowStride + step * stepStride] * from[step][:] for each of `rows`. `begin` gives the
  /// sums of a row to add to, `end` takes them; both are called in the order of the rows.
  struct Product {
    mlir::Value a;
    int64_t rowStride, stepStride;
    mlir::Value from;
    int64_t rows, steps;
  };
  using Begin = llvm::function_ref<Sums(mlir::OpBuilder &b, mlir::Value row)>;
  using End = llvm::function_ref<void(mlir::OpBuilder &b, mlir::Value row, Sums sums)>;
  void multiply(mlir::OpBuilder &b, const Product &product, int64_t rowsAtOnce, Begin begin, End end) const;

private:
  int64_t lanes() const { return type.getNumElements(); }
  mlir::Value address(mlir::OpBuilder &b, mlir::Value tile, mlir::Value row, int64_t vector) const;
  void multiplyRows(mlir::OpBuilder &b, const Product &product, mlir::Value first, int64_t rows, Begin begin,
                    End end) const;
  /// Squares of the tile: `body` gets the first element, how many there are of them, and the vector of lanes.
  void forEachSquare(
      mlir::OpBuilder &b, int64_t elements,
      llvm::function_ref<void(mlir::OpBuilder &b, mlir::Value element, int64_t count, int64_t vector)> body) const;

  mlir::Location loc;
  mlir::VectorType type;
  int64_t items, vectors;
};

} // namespace sluice::cpu
