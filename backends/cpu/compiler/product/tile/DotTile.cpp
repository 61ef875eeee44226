#include "backends/cpu/compiler/product/tile/DotTile.h"

#include "backends/cpu/compiler/machine/VectorAccess.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include "llvm/Support/MathExtras.h"

#include <algorithm>

namespace sluice::cpu {

using namespace mlir;

static constexpr int64_t mostRows = 8;  // each row occupies an address register
static constexpr int64_t leastSums = 8; // multiply-adds in flight: a latency of four on two ports

int64_t dotTileRows(int64_t columns, int64_t registers) {
  return std::clamp<int64_t>((registers - columns - 1) / columns, 1, mostRows);
}

DotTile::DotTile(Location loc, VectorType type, int64_t rows, int64_t columns)
    : loc(loc), vectorType(type), numRows(rows), numColumns(columns),
      copies(llvm::divideCeil(leastSums, rows * columns)) {}

Sums DotTile::zeros(OpBuilder &b) const {
  return Sums(copies * numRows * numColumns, b.create<arith::ConstantOp>(loc, b.getZeroAttr(vectorType)));
}

Sums DotTile::addRun(OpBuilder &builder, Sums sums, Value a, int64_t aStride, Value b, int64_t bStride,
                     int64_t length) const {
  int64_t lanes = vectorType.getNumElements();
  Type element = vectorType.getElementType();
  // One vector of terms, `k` + `plus` and on, into the sums number `copy`.
  auto step = [&](OpBuilder &body, Value k, int64_t plus, int64_t count, int64_t copy, Sums &carried) {
    auto load = [&](Value base, int64_t offset) {
      Value address = elementAddress(body, loc, element, elementAddress(body, loc, element, base, k), plus + offset);
      return loadFirstLanes(body, loc, vectorType, address, count);
    };
    SmallVector<Value> columns;
    for (int64_t n = 0; n < numColumns; ++n)
      columns.push_back(load(b, n * bStride));
    for (int64_t r = 0; r < numRows; ++r) {
      Value row = load(a, r * aStride);
      for (int64_t n = 0; n < numColumns; ++n) {
        Value &sum = carried[(copy * numRows + r) * numColumns + n];
        sum = body.create<vector::FMAOp>(loc, row, columns[n], sum);
      }
    }
  };
  int64_t whole = length / lanes, looped = whole / copies * copies;
  Value zero = constantI64(builder, loc, 0);
  if (looped > copies)
    sums = accumulateOver(builder, loc, zero, constantI64(builder, loc, looped * lanes), copies * lanes, sums,
                          [&](OpBuilder &body, Value k, Sums &carried) {
                            for (int64_t copy = 0; copy < copies; ++copy)
                              step(body, k, copy * lanes, lanes, copy, carried);
                          });
  else
    looped = 0;
  for (int64_t vector = looped; vector * lanes < length; ++vector)
    step(builder, zero, vector * lanes, std::min(lanes, length - vector * lanes), vector % copies, sums);
  return sums;
}

// Adds the upper half to the lower half, until one lane is left.
static Value sumOfLanes(OpBuilder &b, Location loc, Value vector) {
  for (int64_t half = cast<VectorType>(vector.getType()).getNumElements() / 2; half >= 1; half /= 2) {
    auto part = [&](int64_t from) {
      return b.create<vector::ExtractStridedSliceOp>(loc, vector, ArrayRef<int64_t>{from}, ArrayRef<int64_t>{half},
                                                     ArrayRef<int64_t>{1});
    };
    vector = b.create<arith::AddFOp>(loc, part(0), part(half));
  }
  return b.create<vector::ExtractOp>(loc, vector, ArrayRef<int64_t>{0});
}

Value DotTile::finish(OpBuilder &b, const Sums &sums, int64_t row) const {
  auto type = VectorType::get({numColumns}, vectorType.getElementType());
  Value result = b.create<arith::ConstantOp>(loc, b.getZeroAttr(type));
  for (int64_t n = 0; n < numColumns; ++n) {
    Value sum = sums[row * numColumns + n];
    for (int64_t copy = 1; copy < copies; ++copy)
      sum = b.create<arith::AddFOp>(loc, sum, sums[(copy * numRows + row) * numColumns + n]);
    result = b.create<vector::InsertOp>(loc, sumOfLanes(b, loc, sum), result, ArrayRef<int64_t>{n});
  }
  return result;
}

} // namespace sluice::cpu
