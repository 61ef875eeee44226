#include "backends/cpu/compiler/product/matmul/SumsOfBlock.h"

#include "backends/cpu/compiler/machine/VectorAccess.h"
#include "backends/cpu/compiler/product/tile/BlockElements.h"
#include "backends/cpu/compiler/product/tile/IndexMath.h"
#include "sluice/backend/blocks.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/Support/MathExtras.h"

namespace sluice::cpu {

using namespace mlir;

SumsOfBlock::SumsOfBlock(StageFunction &stage, Location loc, VectorType vector, int64_t rows, int64_t columns)
    : loc(loc), vector(vector), lanes(vector.getNumElements()), mostRows(rows),
      strideOfSums(llvm::alignTo(columns, lanes)), sums(stage.stack(vector.getElementType(), rows * strideOfSums)) {}

// Whole vectors are stored, so each panel ends with room for one.
void SumsOfBlock::makeRoomForA(StageFunction &stage, int64_t terms, int64_t tileRows) {
  rowsOfPanel = tileRows;
  panelOfA = terms * tileRows + lanes;
  copyOfA = stage.stack(vector.getElementType(), llvm::divideCeil(mostRows, tileRows) * panelOfA);
}

void SumsOfBlock::makeRoomForB(StageFunction &stage, int64_t terms, int64_t width) {
  strideOfB = width;
  copyOfB = stage.stack(vector.getElementType(), llvm::alignTo(terms + lanes, lanes) * strideOfB);
}

Value SumsOfBlock::addressOfSums(OpBuilder &b, Value row, Value column) const {
  IndexMath math{b, loc};
  return elementAddress(b, loc, vector.getElementType(), sums, math.add(math.mul(row, strideOfSums), column));
}

Value SumsOfBlock::addressOfA(OpBuilder &b, Value term, Value row) const {
  IndexMath math{b, loc};
  Value panel = math.mul(math.div(row, rowsOfPanel), panelOfA);
  return elementAddress(b, loc, vector.getElementType(), copyOfA, math.add(panel, math.mul(term, rowsOfPanel)));
}

void SumsOfBlock::clear(OpBuilder &b, Value rows) {
  IndexMath math{b, loc};
  Value zero = b.create<arith::ConstantOp>(loc, b.getZeroAttr(vector));
  loopOver(b, loc, math.constant(0), math.mul(rows, strideOfSums), lanes, [&](OpBuilder &inner, Value at) {
    storeVector(inner, loc, zero, elementAddress(inner, loc, vector.getElementType(), sums, at));
  });
}

// A vector may extend into the next term of its panel, which is stored later.
void SumsOfBlock::copyA(OpBuilder &b, Value from, int64_t stride, Value terms, Value rows, int64_t lastRows) {
  IndexMath math{b, loc};
  Type element = vector.getElementType();
  Value whole = math.roundDown(rows, rowsOfPanel);
  auto copyRows = [&](OpBuilder &body, Value source, Value term, Value row, int64_t count) {
    Tile adjacent(loc, vector, 1, count, /*wholeVectors=*/false);
    Value to = addressOfA(body, term, row);
    for (auto [v, its] : llvm::enumerate(adjacent.loadB(body, elementAddress(body, loc, element, source, row), {})))
      storeVector(body, loc, its, elementAddress(body, loc, element, to, int64_t(v) * lanes));
  };
  loopOver(b, loc, math.constant(0), terms, 1, [&](OpBuilder &inner, Value term) {
    Value source = elementAddress(inner, loc, element, from, IndexMath{inner, loc}.mul(term, stride));
    loopOver(inner, loc, constantI64(inner, loc, 0), whole, rowsOfPanel,
             [&](OpBuilder &body, Value row) { copyRows(body, source, term, row, rowsOfPanel); });
    if (lastRows != 0)
      ifThen(inner, loc, IndexMath{inner, loc}.less(whole, rows),
             [&](OpBuilder &body) { copyRows(body, source, term, whole, lastRows); });
  });
}

Value SumsOfBlock::copyB(OpBuilder &b, Value from, int64_t stride, Value terms, int64_t columns) {
  Type element = vector.getElementType();
  loopOver(b, loc, constantI64(b, loc, 0), terms, 1, [&](OpBuilder &inner, Value term) {
    Value source = elementAddress(inner, loc, element, from, IndexMath{inner, loc}.mul(term, stride));
    Value to = elementAddress(inner, loc, element, copyOfB, IndexMath{inner, loc}.mul(term, strideOfB));
    for (int64_t column = 0; column < columns; column += lanes)
      storeVector(inner, loc,
                  loadFirstLanes(inner, loc, vector, elementAddress(inner, loc, element, source, column),
                                 std::min(lanes, columns - column)),
                  elementAddress(inner, loc, element, to, column));
  });
  return copyOfB;
}

Value SumsOfBlock::dequantizeB(OpBuilder &b, const Tile &row, Value from, Value scales, int64_t stride, Value first,
                               Value terms) {
  Type element = vector.getElementType();
  loopOver(b, loc, constantI64(b, loc, 0), terms, 1, [&](OpBuilder &inner, Value term) {
    IndexMath math{inner, loc};
    Value block = math.div(math.add(first, term), SLUICE_BLOCK_ELEMENTS);
    Value its = elementAddress(inner, loc, inner.getF16Type(), scales, math.mul(block, stride));
    Value source = elementAddress(inner, loc, elementInBlocks(inner.getContext()), from, math.mul(term, stride));
    Value to = elementAddress(inner, loc, element, copyOfB, math.mul(term, strideOfB));
    for (auto [v, values] : llvm::enumerate(row.loadB(inner, source, row.loadScales(inner, its))))
      storeVector(inner, loc, values, elementAddress(inner, loc, element, to, int64_t(v) * lanes));
  });
  return copyOfB;
}

// Also handles a few adjacent terms, so that squares of terms and columns are whole.
Value SumsOfBlock::packB(OpBuilder &b, const PackPanels &pack, Value source, Value first, Value terms,
                         int64_t columns) {
  IndexMath math{b, loc};
  Value begin = math.roundDown(first, lanes), last = math.add(first, terms);
  Value end = math.min(math.mul(math.ceilDiv(last, lanes), lanes), math.constant(pack.k));
  PackPanels part = pack;
  part.panel = strideOfB;
  emitPackTerms(b, loc, part, lanes, source, copyOfB, begin, end, columns);
  return elementAddress(b, loc, vector.getElementType(), copyOfB, math.mul(math.sub(first, begin), strideOfB));
}

void SumsOfBlock::add(OpBuilder &b, const Tile &tile, const Sums &more, Value row, Value column) {
  Value base = addressOfSums(b, row, column);
  Sums before = tile.load(b, base, strideOfSums), after;
  for (auto [sum, part] : llvm::zip_equal(before, more))
    after.push_back(b.create<arith::AddFOp>(loc, sum, part));
  tile.store(b, after, base, strideOfSums);
}

Value SumsOfBlock::load(OpBuilder &b, Value row, Value column) const {
  return loadVector(b, loc, vector, addressOfSums(b, row, column));
}

} // namespace sluice::cpu
