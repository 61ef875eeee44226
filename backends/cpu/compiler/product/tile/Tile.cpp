#include "backends/cpu/compiler/product/tile/Tile.h"

#include "backends/cpu/compiler/machine/Halves.h"
#include "backends/cpu/compiler/machine/VectorAccess.h"
#include "backends/cpu/compiler/product/tile/BlockElements.h"
#include "backends/cpu/compiler/product/tile/IndexMath.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"

namespace sluice::cpu {

using namespace mlir;

/// The number of vectors of `lanes` elements in one cache line; at least 1.
static int64_t vectorsOfLine(int64_t lanes, Type element) {
  constexpr int64_t lineBits = 512;
  return std::max<int64_t>(1, lineBits / (lanes * element.getIntOrFloatBitWidth()));
}

Tile::Tile(Location loc, VectorType type, int64_t rows, int64_t columns, bool wholeVectors)
    : loc(loc), vectorType(type), numRows(rows), numVectors(llvm::divideCeil(columns, type.getNumElements())),
      columns(columns), wholeVectors(wholeVectors) {}

int64_t Tile::lanesOf(int64_t vector) const {
  int64_t lanes = vectorType.getNumElements();
  return std::min(lanes, columns - vector * lanes);
}

int64_t Tile::offsetInPanels(int64_t vector, int64_t distance) const {
  int64_t column = vector * vectorType.getNumElements();
  return panel == 0 ? column : column / panel * distance + column % panel;
}

Type Tile::elementOfB() const {
  if (hasBlocks)
    return elementInBlocks(vectorType.getContext());
  return halfOfB ? typeInMemory(halfOfB) : vectorType.getElementType();
}

Vectors Tile::loadScales(OpBuilder &b, Value address) const {
  Vectors scales;
  for (int64_t v = 0; v < numVectors; ++v)
    scales.push_back(cpu::loadScales(
        b, loc, vectorType, elementAddress(b, loc, b.getF16Type(), address, offsetInPanels(v, scaleDistance))));
  return scales;
}

Vectors Tile::loadB(OpBuilder &b, Value address, ArrayRef<Value> scales) const {
  Vectors row;
  auto type = VectorType::get(vectorType.getShape(), elementOfB());
  for (int64_t v = 0; v < numVectors; ++v) {
    Value at = elementAddress(b, loc, elementOfB(), address, offsetInPanels(v, panelDistance));
    Value stored = wholeVectors ? loadVector(b, loc, type, at) : loadFirstLanes(b, loc, type, at, lanesOf(v));
    row.push_back(hasBlocks ? scaled(b, loc, stored, scales[v])
                  : halfOfB ? widenHalf(b, loc, stored, halfOfB)
                            : stored);
    if (ahead && v % vectorsOfLine(vectorType.getNumElements(), elementOfB()) == 0)
      prefetch(b, loc, elementAddress(b, loc, elementOfB(), at, ahead));
  }
  return row;
}

void Tile::prefetchRow(OpBuilder &b, Value address) const {
  for (int64_t v = 0; v < numVectors; v += vectorsOfLine(vectorType.getNumElements(), elementOfB()))
    prefetch(b, loc, elementAddress(b, loc, elementOfB(), address, offsetInPanels(v, panelDistance)),
             /*forWrite=*/false, /*locality=*/2);
}

Sums Tile::zeros(OpBuilder &b) const {
  Value zero = b.create<arith::ConstantOp>(loc, b.getZeroAttr(vectorType));
  return Sums(numRows * numVectors, zero);
}

// Fewer rows are unrolled.
static constexpr int64_t kRowsOfLoop = 3;

void Tile::forEachLine(OpBuilder &b, llvm::function_ref<void(OpBuilder &, Value row, int64_t vector)> body) const {
  auto emitLines = [&](OpBuilder &inner, Value row) {
    for (int64_t v = 0; v < numVectors; v += vectorsOfLine(vectorType.getNumElements(), vectorType.getElementType()))
      body(inner, row, v);
  };
  if (numRows >= kRowsOfLoop)
    return loopOver(b, loc, constantI64(b, loc, 0), constantI64(b, loc, numRows), 1, emitLines);
  for (int64_t row = 0; row < numRows; ++row)
    emitLines(b, constantI64(b, loc, row));
}

void Tile::forEachRow(OpBuilder &b, StageFunction &stage, const Sums &sums, bool isLoop, Value count,
                      llvm::function_ref<void(OpBuilder &, Value row, ArrayRef<Value> sums)> body) const {
  IndexMath math{b, loc};
  if (isLoop && numRows >= kRowsOfLoop) {
    int64_t rowStride = numVectors * vectorType.getNumElements();
    Value memory = stage.scratch(vectorType, numRows * numVectors), rows = math.constant(numRows);
    store(b, sums, memory, rowStride);
    return loopOver(
        b, loc, math.constant(0), count ? math.min(count, rows) : rows, 1, [&](OpBuilder &inner, Value row) {
          Tile one(loc, vectorType, 1, columns, wholeVectors);
          Value offset = IndexMath{inner, loc}.mul(row, rowStride);
          body(inner, row, one.load(inner, elementAddress(inner, loc, vectorType.getElementType(), memory, offset), 0));
        });
  }
  for (int64_t r = 0; r < numRows; ++r) {
    Value row = math.constant(r);
    auto emitRow = [&](OpBuilder &inner) { body(inner, row, ArrayRef(sums).slice(r * numVectors, numVectors)); };
    if (count)
      ifThen(b, loc, math.less(row, count), emitRow);
    else
      emitRow(b);
  }
}

Sums Tile::load(OpBuilder &b, Value base, int64_t rowStride) const {
  Sums sums;
  for (int64_t row = 0; row < numRows; ++row)
    for (int64_t v = 0; v < numVectors; ++v) {
      int64_t offset = row * rowStride + v * vectorType.getNumElements();
      sums.push_back(loadVector(b, loc, vectorType, elementAddress(b, loc, vectorType.getElementType(), base, offset)));
    }
  return sums;
}

void Tile::store(OpBuilder &b, const Sums &sums, Value base, int64_t rowStride) const {
  for (int64_t row = 0; row < numRows; ++row)
    for (int64_t v = 0; v < numVectors; ++v) {
      int64_t offset = row * rowStride + v * vectorType.getNumElements();
      storeVector(b, loc, sums[row * numVectors + v],
                  elementAddress(b, loc, vectorType.getElementType(), base, offset));
    }
}

void Tile::multiplyAdd(OpBuilder &b, Sums &sums, ArrayRef<Value> aAddresses, Value bAddress,
                       ArrayRef<Value> scales) const {
  Vectors bVectors = loadB(b, bAddress, scales);
  for (int64_t row = 0; row < numRows; ++row) {
    if (!aAddresses[row])
      continue;
    Value a = loadBroadcast(b, loc, vectorType, aAddresses[row]);
    for (int64_t v = 0; v < numVectors; ++v) {
      Value &sum = sums[row * numVectors + v];
      sum = b.create<vector::FMAOp>(loc, a, bVectors[v], sum);
    }
  }
}

Sums accumulateOver(OpBuilder &b, Location loc, Value lower, Value upper, int64_t step, Sums sums,
                    llvm::function_ref<void(OpBuilder &, Value, Sums &)> body) {
  auto loop = b.create<scf::ForOp>(loc, lower, upper, constantI64(b, loc, step), ValueRange(sums));
  OpBuilder inner = OpBuilder::atBlockEnd(loop.getBody());
  Sums carried(loop.getRegionIterArgs().begin(), loop.getRegionIterArgs().end());
  body(inner, loop.getInductionVar(), carried);
  inner.create<scf::YieldOp>(loc, ValueRange(carried));
  return Sums(loop.getResults().begin(), loop.getResults().end());
}

Sums accumulateOver(OpBuilder &b, Location loc, int64_t count, int64_t unroll, Sums sums,
                    llvm::function_ref<void(OpBuilder &, Value, int64_t, Sums &)> body) {
  int64_t looped = count / unroll * unroll;
  if (looped > unroll)
    sums = accumulateOver(b, loc, constantI64(b, loc, 0), constantI64(b, loc, looped), unroll, sums,
                          [&](OpBuilder &inner, Value i, Sums &carried) {
                            for (int64_t u = 0; u < unroll; ++u)
                              body(inner, i, u, carried);
                          });
  else
    looped = 0;
  for (int64_t i = looped; i < count; ++i)
    body(b, constantI64(b, loc, 0), i, sums);
  return sums;
}

Sums addApart(OpBuilder &b, Location loc, const Tile &tile, Sums sums,
              llvm::function_ref<Sums(OpBuilder &, Sums)> terms) {
  Sums part = terms(b, tile.zeros(b));
  for (auto [sum, more] : llvm::zip_equal(sums, part))
    sum = b.create<arith::AddFOp>(loc, sum, more);
  return sums;
}

Sums accumulateInParts(OpBuilder &b, Location loc, const Tile &tile, Value lower, Value upper, Sums sums,
                       llvm::function_ref<void(OpBuilder &, Value, Sums &)> body) {
  return accumulateOver(b, loc, lower, upper, termsPerSum, sums, [&](OpBuilder &outer, Value first, Sums &carried) {
    IndexMath math{outer, loc};
    Value last = math.min(math.add(first, termsPerSum), upper);
    carried = addApart(outer, loc, tile, carried, [&](OpBuilder &inner, Sums zeros) {
      return accumulateOver(inner, loc, first, last, 1, zeros, body);
    });
  });
}

int64_t termsOfPart(int64_t count) {
  constexpr int64_t mostUnrolled = 4;
  return llvm::alignTo(llvm::divideCeil(count, llvm::divideCeil(count, termsPerSum)), mostUnrolled);
}

Sums accumulateInParts(OpBuilder &b, Location loc, const Tile &tile, int64_t count, int64_t unroll, Sums sums,
                       llvm::function_ref<void(OpBuilder &, Value, int64_t, Sums &)> body) {
  return accumulateParts(b, loc, tile, count, sums, [&](OpBuilder &inner, Value first, int64_t terms, Sums zeros) {
    return accumulateOver(inner, loc, terms, unroll, zeros, [&](OpBuilder &step, Value i, int64_t plus, Sums &sum) {
      body(step, IndexMath{step, loc}.add(first, i), plus, sum);
    });
  });
}

Sums accumulateParts(OpBuilder &b, Location loc, const Tile &tile, int64_t count, Sums sums,
                     llvm::function_ref<Sums(OpBuilder &, Value, int64_t, Sums)> terms) {
  int64_t size = termsOfPart(count), whole = count / size;
  auto addPart = [&](OpBuilder &outer, Value first, int64_t its, Sums &carried) {
    carried = addApart(outer, loc, tile, carried,
                       [&](OpBuilder &inner, Sums zeros) { return terms(inner, first, its, std::move(zeros)); });
  };
  sums = accumulateOver(b, loc, constantI64(b, loc, 0), constantI64(b, loc, whole * size), size, sums,
                        [&](OpBuilder &outer, Value first, Sums &carried) { addPart(outer, first, size, carried); });
  if (whole * size < count)
    addPart(b, constantI64(b, loc, whole * size), count - whole * size, sums);
  return sums;
}

void loopOver(OpBuilder &b, Location loc, Value lower, Value upper, int64_t step,
              llvm::function_ref<void(OpBuilder &, Value)> body) {
  auto loop = b.create<scf::ForOp>(loc, lower, upper, constantI64(b, loc, step));
  OpBuilder inner(loop.getBody()->getTerminator());
  body(inner, loop.getInductionVar());
}

void ifThen(OpBuilder &b, Location loc, Value condition, llvm::function_ref<void(OpBuilder &)> body) {
  auto branch = b.create<scf::IfOp>(loc, condition, /*withElseRegion=*/false);
  OpBuilder inner = branch.getThenBodyBuilder();
  body(inner);
}

void ifThenElse(OpBuilder &b, Location loc, Value condition, llvm::function_ref<void(OpBuilder &)> then,
                llvm::function_ref<void(OpBuilder &)> otherwise) {
  auto branch = b.create<scf::IfOp>(loc, condition, /*withElseRegion=*/true);
  OpBuilder thenBuilder = branch.getThenBodyBuilder();
  then(thenBuilder);
  OpBuilder elseBuilder = branch.getElseBodyBuilder();
  otherwise(elseBuilder);
}

Value launder(OpBuilder &b, Location loc, Value address) {
  return b
      .create<LLVM::InlineAsmOp>(loc, address.getType(), ValueRange{address}, /*asm_string=*/"", /*constraints=*/"=r,0",
                                 /*has_side_effects=*/false, /*is_align_stack=*/false, LLVM::AsmDialectAttr(),
                                 ArrayAttr())
      .getRes();
}

} // namespace sluice::cpu
