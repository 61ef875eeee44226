#include "backends/cpu/compiler/attention/LaneTile.h"

#include "backends/cpu/compiler/machine/VectorAccess.h"
#include "backends/cpu/compiler/product/tile/IndexMath.h"
#include "backends/cpu/compiler/product/tile/Transpose.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace sluice::cpu {

using namespace mlir;

Value LaneTile::address(OpBuilder &b, Value tile, Value row, int64_t vector) const {
  Value offset = IndexMath{b, loc}.mul(row, width());
  return elementAddress(b, loc, type.getElementType(), elementAddress(b, loc, type.getElementType(), tile, offset),
                        vector * lanes());
}

Sums LaneTile::load(OpBuilder &b, Value tile, Value row) const {
  Sums sums;
  for (int64_t vector = 0; vector < vectors; ++vector)
    sums.push_back(loadVector(b, loc, type, address(b, tile, row, vector)));
  return sums;
}

void LaneTile::store(OpBuilder &b, const Sums &sums, Value tile, Value row) const {
  for (int64_t vector = 0; vector < vectors; ++vector)
    storeVector(b, loc, sums[vector], address(b, tile, row, vector));
}

Sums LaneTile::splat(OpBuilder &b, double value) const {
  auto number = FloatAttr::get(type.getElementType(), value);
  return Sums(vectors, b.create<arith::ConstantOp>(loc, DenseElementsAttr::get(type, Attribute(number))));
}

void LaneTile::fill(OpBuilder &b, Value tile, int64_t rows, double value) const {
  loopOver(b, loc, constantI64(b, loc, 0), constantI64(b, loc, rows), 1,
           [&](OpBuilder &inner, Value row) { store(inner, splat(inner, value), tile, row); });
}

Sums LaneTile::loadItems(OpBuilder &b, Value from) const {
  Sums sums;
  for (int64_t vector = 0; vector < vectors; ++vector)
    sums.push_back(loadFirstLanes(b, loc, type, elementAddress(b, loc, type.getElementType(), from, vector * lanes()),
                                  itemsOf(vector)));
  return sums;
}

void LaneTile::storeItems(OpBuilder &b, const Sums &sums, Value to) const {
  for (int64_t vector = 0; vector < vectors; ++vector)
    storeVector(b, loc, firstLanes(b, loc, sums[vector], itemsOf(vector)),
                elementAddress(b, loc, type.getElementType(), to, vector * lanes()));
}

void LaneTile::forEachSquare(OpBuilder &b, int64_t elements,
                             llvm::function_ref<void(OpBuilder &, Value, int64_t, int64_t)> body) const {
  int64_t whole = elements / lanes() * lanes();
  for (int64_t vector = 0; vector < vectors; ++vector) {
    if (whole)
      loopOver(b, loc, constantI64(b, loc, 0), constantI64(b, loc, whole), lanes(),
               [&](OpBuilder &inner, Value element) { body(inner, element, lanes(), vector); });
    if (whole != elements)
      body(b, constantI64(b, loc, whole), elements - whole, vector);
  }
}

void LaneTile::transposeIn(OpBuilder &b, Value tile, int64_t elements, int64_t stride, Load load) const {
  forEachSquare(b, elements, [&](OpBuilder &inner, Value element, int64_t count, int64_t vector) {
    IndexMath math{inner, loc};
    SmallVector<Value> rows(lanes(), inner.create<arith::ConstantOp>(loc, inner.getZeroAttr(type)));
    for (int64_t item = 0; item < itemsOf(vector); ++item)
      rows[item] = load(inner, math.add(element, (vector * lanes() + item) * stride), count);
    transposeSquare(inner, loc, rows);
    for (int64_t i = 0; i < count; ++i)
      storeVector(inner, loc, rows[i], address(inner, tile, math.add(element, i), vector));
  });
}

void LaneTile::transposeOut(OpBuilder &b, Value tile, int64_t elements, int64_t stride, Store store) const {
  forEachSquare(b, elements, [&](OpBuilder &inner, Value element, int64_t count, int64_t vector) {
    IndexMath math{inner, loc};
    SmallVector<Value> rows(lanes(), inner.create<arith::ConstantOp>(loc, inner.getZeroAttr(type)));
    for (int64_t i = 0; i < count; ++i)
      rows[i] = loadVector(inner, loc, type, address(inner, tile, math.add(element, i), vector));
    transposeSquare(inner, loc, rows);
    for (int64_t item = 0; item < itemsOf(vector); ++item)
      store(inner, firstLanes(inner, loc, rows[item], count), math.add(element, (vector * lanes() + item) * stride));
  });
}

void LaneTile::multiply(OpBuilder &b, const Product &product, int64_t rowsAtOnce, Begin begin, End end) const {
  int64_t whole = product.rows / rowsAtOnce * rowsAtOnce;
  if (whole)
    loopOver(b, loc, constantI64(b, loc, 0), constantI64(b, loc, whole), rowsAtOnce,
             [&](OpBuilder &inner, Value row) { multiplyRows(inner, product, row, rowsAtOnce, begin, end); });
  if (whole != product.rows)
    multiplyRows(b, product, constantI64(b, loc, whole), product.rows - whole, begin, end);
}

void LaneTile::multiplyRows(OpBuilder &b, const Product &product, Value first, int64_t rows, Begin begin,
                            End end) const {
  Type element = type.getElementType();
  IndexMath math{b, loc};
  Tile tile(loc, type, rows, width(), /*wholeVectors=*/true);
  Sums sums;
  for (int64_t row = 0; row < rows; ++row)
    sums.append(begin(b, math.add(first, row)));
  Value a = elementAddress(b, loc, element, product.a, math.mul(first, product.rowStride));
  int64_t unroll = rows * vectors >= 16 ? 2 : 4;
  auto step = [&](OpBuilder &inner, Value at, int64_t plus, Sums &carried) {
    IndexMath steps{inner, loc};
    Value column = elementAddress(inner, loc, element, a, steps.mul(at, product.stepStride));
    SmallVector<Value> addresses;
    for (int64_t row = 0; row < rows; ++row)
      addresses.push_back(
          elementAddress(inner, loc, element, column, row * product.rowStride + plus * product.stepStride));
    Value from = elementAddress(inner, loc, element, product.from, steps.mul(at, width()));
    tile.multiplyAdd(inner, carried, addresses, elementAddress(inner, loc, element, from, plus * width()));
  };
  sums = accumulateOver(b, loc, product.steps, unroll, sums, step);
  for (int64_t row = 0; row < rows; ++row)
    end(b, math.add(first, row), Sums(ArrayRef(sums).slice(row * vectors, vectors)));
}

} // namespace sluice::cpu
