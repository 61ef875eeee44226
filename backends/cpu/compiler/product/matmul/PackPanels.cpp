#include "backends/cpu/compiler/product/matmul/PackPanels.h"

#include "backends/cpu/compiler/machine/VectorAccess.h"
#include "backends/cpu/compiler/product/tile/IndexMath.h"
#include "backends/cpu/compiler/product/tile/Tile.h"
#include "backends/cpu/compiler/product/tile/Transpose.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"

#include <numeric>

namespace sluice::cpu {

using namespace mlir;

int64_t PackPanels::count() const {
  return std::accumulate(counts.begin(), counts.end(), int64_t(1), std::multiplies<>());
}
int64_t PackPanels::elements() const { return llvm::divideCeil(n, panel) * count() * k * panel; }

namespace {
class Packer {
public:
  // Of the terms [begin, end).
  Packer(Location loc, const PackPanels &pack, int64_t lanes, Value begin, Value end)
      : loc(loc), pack(pack), lanes(lanes), vector(VectorType::get({lanes}, pack.element)), begin(begin), end(end) {}

  // One panel of one matrix: `source` and `target` are its corners, `columns` the number that it has.
  void panel(OpBuilder &b, Value source, Value target, Value columns) {
    IndexMath math{b, loc};
    if (pack.panel == 1)
      return loopOver(b, loc, begin, end, 1, [&](OpBuilder &inner, Value k) {
        Value scalar = loadScalar(inner, loc, pack.element, address(inner, source, sourceK(inner, k)));
        storeVector(inner, loc, scalar, address(inner, target, targetK(inner, k)));
      });
    Value whole = math.roundDown(columns, lanes);
    loopOver(b, loc, math.constant(0), whole, lanes,
             [&](OpBuilder &inner, Value n) { column(inner, source, target, n, lanes); });
    if (pack.n % lanes != 0)
      ifThen(b, loc, math.less(whole, columns),
             [&](OpBuilder &inner) { column(inner, source, target, whole, pack.n % lanes); });
  }

private:
  bool canTranspose() const { return pack.strideK == 1 && (pack.panelK == 0 || pack.panelK % lanes == 0); }

  // The terms of `width` columns (at most a vector) starting at n.
  void column(OpBuilder &b, Value source, Value target, Value n, int64_t width) {
    Value from = address(b, source, IndexMath{b, loc}.mul(n, pack.strideN));
    Value to = address(b, target, n);
    IndexMath math{b, loc};
    if (pack.strideN == 1)
      return loopOver(b, loc, begin, end, 1, [&](OpBuilder &inner, Value k) {
        Value row = loadFirstLanes(inner, loc, vector, address(inner, from, sourceK(inner, k)), width);
        storeVector(inner, loc, row, address(inner, to, targetK(inner, k)));
      });
    // Tails are gathered: transposing in registers would need much code for each tail shape.
    bool transposes = canTranspose() && width == lanes && pack.k >= lanes;
    Value whole = transposes ? math.add(begin, math.roundDown(math.sub(end, begin), lanes)) : begin;
    if (transposes)
      loopOver(b, loc, begin, whole, lanes, [&](OpBuilder &inner, Value k) { block(inner, from, to, k); });
    if (!transposes || pack.k % lanes != 0)
      loopOver(b, loc, whole, end, 1, [&](OpBuilder &inner, Value k) { gatherRow(inner, from, to, k, width); });
  }

  // A square block, read along k and written along n.
  void block(OpBuilder &b, Value from, Value to, Value k) {
    Value corner = address(b, from, sourceK(b, k));
    SmallVector<Value> rows;
    for (int64_t n = 0; n < lanes; ++n)
      rows.push_back(loadVector(b, loc, vector, elementAddress(b, loc, pack.element, corner, n * pack.strideN)));
    transposeSquare(b, loc, rows);
    Value out = address(b, to, targetK(b, k));
    for (int64_t i = 0; i < lanes; ++i)
      storeVector(b, loc, rows[i], elementAddress(b, loc, pack.element, out, i * pack.panel));
  }

  void gatherRow(OpBuilder &b, Value from, Value to, Value k, int64_t width) {
    Value corner = address(b, from, sourceK(b, k));
    Value row = b.create<arith::ConstantOp>(loc, b.getZeroAttr(vector));
    for (int64_t n = 0; n < width; ++n) {
      Value scalar = loadScalar(b, loc, pack.element, elementAddress(b, loc, pack.element, corner, n * pack.strideN));
      row = b.create<vector::InsertOp>(loc, scalar, row, ArrayRef<int64_t>{n});
    }
    storeVector(b, loc, row, address(b, to, targetK(b, k)));
  }

  Value targetK(OpBuilder &b, Value k) {
    IndexMath math{b, loc};
    return math.mul(math.sub(k, begin), pack.panel);
  }

  Value sourceK(OpBuilder &b, Value k) {
    IndexMath math{b, loc};
    if (!pack.panelK)
      return math.mul(k, pack.strideK);
    return math.add(math.mul(math.div(k, pack.panelK), pack.stridePanelK),
                    math.mul(math.rem(k, pack.panelK), pack.strideK));
  }

  Value address(OpBuilder &b, Value base, Value offset) { return elementAddress(b, loc, pack.element, base, offset); }

  Location loc;
  const PackPanels &pack;
  int64_t lanes;
  VectorType vector;
  Value begin, end;
};
} // namespace

void emitPackTerms(OpBuilder &b, Location loc, const PackPanels &pack, int64_t lanes, Value source, Value target,
                   Value begin, Value end, int64_t columns) {
  PackPanels part = pack;
  part.n = columns;
  Packer(loc, part, lanes, begin, end).panel(b, source, target, constantI64(b, loc, columns));
}

Stage emitPackPanels(const StageModule &module, llvm::StringRef name, Location loc, const PackPanels &pack,
                     const Target &target) {
  int64_t lanes = target.lanes(pack.element.getIntOrFloatBitWidth());
  int64_t panels = llvm::divideCeil(pack.n, pack.panel);
  StageFunction stage = StageFunction::create(module, name, loc);
  stage.forEachTask([&](OpBuilder &b, Value task) {
    IndexMath math{b, loc};
    Value panel = math.div(task, pack.count());
    Value t = math.rem(task, pack.count());
    Value n = math.mul(panel, pack.panel);
    Value columns = math.min(math.constant(pack.panel), math.sub(math.constant(pack.n), n));
    Value fromOffset =
        math.add(math.add(math.dot(t, pack.counts, pack.stridesT), math.mul(n, pack.strideN)), pack.from.offset);
    Value place = pack.reversed ? math.sub(math.constant(pack.count() - 1), t) : t;
    Value toOffset = math.mul(math.add(math.mul(panel, pack.count()), place), pack.k * pack.panel);
    toOffset = math.add(toOffset, pack.to.offset);
    Packer(loc, pack, lanes, math.constant(0), math.constant(pack.k))
        .panel(b, elementAddress(b, loc, pack.element, stage.buffer(pack.from.buffer), fromOffset),
               elementAddress(b, loc, pack.element, stage.buffer(pack.to.buffer), toOffset), columns);
  });
  return {name.str(), panels * pack.count(), 0};
}

} // namespace sluice::cpu
