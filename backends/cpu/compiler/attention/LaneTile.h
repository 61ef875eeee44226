// A tile on the stack with items on its lanes: [rows][lanes], a few vectors wide.
#pragma once

#include "backends/cpu/compiler/product/tile/Tile.h"

namespace sluice::cpu {

class LaneTile {
public:
  /// The first `items` lanes hold items. The remaining lanes of the last vector hold zeros.
  LaneTile(mlir::Location loc, mlir::VectorType type, int64_t items)
      : loc(loc), type(type), items(items), vectors((items + type.getNumElements() - 1) / type.getNumElements()) {}

  int64_t numVectors() const { return vectors; }
  int64_t width() const { return vectors * lanes(); }
  int64_t numItems() const { return items; }
  /// The number of items in this vector.
  int64_t itemsOf(int64_t vector) const { return std::min(lanes(), items - vector * lanes()); }
  mlir::VectorType vectorType() const { return type; }

  Sums load(mlir::OpBuilder &b, mlir::Value tile, mlir::Value row) const;
  void store(mlir::OpBuilder &b, const Sums &sums, mlir::Value tile, mlir::Value row) const;
  Sums splat(mlir::OpBuilder &b, double value) const;
  void fill(mlir::OpBuilder &b, mlir::Value tile, int64_t rows, double value) const;

  /// Loads contiguous items, one per lane.
  Sums loadItems(mlir::OpBuilder &b, mlir::Value from) const;
  void storeItems(mlir::OpBuilder &b, const Sums &sums, mlir::Value to) const;

  /// `Load` loads `count` elements, `offset` elements after the caller's address, into a vector padded with zeros.
  /// `Store` stores a vector there.
  using Load = llvm::function_ref<mlir::Value(mlir::OpBuilder &b, mlir::Value offset, int64_t count)>;
  using Store = llvm::function_ref<void(mlir::OpBuilder &b, mlir::Value vector, mlir::Value offset)>;
  /// tile[e][item] = element e of the item. The elements of an item are contiguous; items are `stride` apart.
  void transposeIn(mlir::OpBuilder &b, mlir::Value tile, int64_t elements, int64_t stride, Load load) const;
  void transposeOut(mlir::OpBuilder &b, mlir::Value tile, int64_t elements, int64_t stride, Store store) const;

  /// sums[r][:] += over `steps` of a[r * rowStride + step * stepStride] * from[step][:] for each of `rows`. `begin`
  /// returns the initial sums of a row, `end` receives the final ones; both are called in row order.
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
  /// Visits the squares of the tile: `body` receives the first element, the number of elements, and the vector of
  /// lanes.
  void forEachSquare(
      mlir::OpBuilder &b, int64_t elements,
      llvm::function_ref<void(mlir::OpBuilder &b, mlir::Value element, int64_t count, int64_t vector)> body) const;

  mlir::Location loc;
  mlir::VectorType type;
  int64_t items, vectors;
};

} // namespace sluice::cpu
