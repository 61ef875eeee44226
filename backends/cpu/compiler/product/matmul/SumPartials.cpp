#include "backends/cpu/compiler/product/matmul/SumPartials.h"

#include "backends/cpu/compiler/machine/VectorAccess.h"
#include "backends/cpu/compiler/product/tile/IndexMath.h"
#include "backends/cpu/compiler/product/tile/Tile.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/Support/MathExtras.h"

namespace sluice::cpu {

using namespace mlir;

// Minimum work of a task to outweigh its overhead, and enough tasks for 16 threads.
static int64_t rowsPerSumTask(const Partials &partials) {
  int64_t forSixteen = llvm::divideCeil(partials.rows, 32);
  int64_t worthwhile = llvm::divideCeil(2048, partials.width);
  return std::min(partials.rows, std::max(forSixteen, worthwhile));
}

Stage emitSumPartials(const StageModule &module, llvm::StringRef name, Location loc, const Partials &partials,
                      const Target &target, const PartialsEpilogue &epilogue) {
  int64_t lanes = target.lanes(partials.element.getIntOrFloatBitWidth());
  auto type = VectorType::get({lanes}, partials.element);
  int64_t vectors = llvm::divideCeil(partials.columns, lanes);
  int64_t rowsPerTask = rowsPerSumTask(partials);
  StageFunction stage = StageFunction::create(module, name, loc);

  // A few vectors of a row at a time, summed over the chunks in registers.
  auto sumVectors = [&](OpBuilder &b, Value row, int64_t first, int64_t count) {
    IndexMath math{b, loc};
    Value offset = math.add(math.mul(row, partials.width), partials.place.offset + first * lanes);
    Value base = elementAddress(b, loc, partials.element, stage.buffer(partials.place.buffer), offset);
    Tile tile(loc, type, 1, count * lanes, true);
    Value chunks = math.ceilDiv(stage.rows, partials.rowsPerChunk);
    Sums sums = accumulateOver(
        b, loc, math.constant(0), chunks, 1, tile.zeros(b), [&](OpBuilder &inner, Value chunk, Sums &carried) {
          Value at = IndexMath{inner, loc}.mul(chunk, partials.elementsPerChunk());
          Sums more = tile.load(inner, elementAddress(inner, loc, partials.element, base, at), 0);
          for (auto [sum, part] : llvm::zip(carried, more))
            sum = inner.create<arith::AddFOp>(loc, sum, part);
        });
    for (int64_t v = 0; v < count; ++v) {
      int64_t column = (first + v) * lanes;
      Value result = firstLanes(b, loc, sums[v], std::min(lanes, partials.columns - column));
      epilogue(stage, b, loc, row, math.constant(column), result);
    }
  };

  stage.forEachTask([&](OpBuilder &b, Value task) {
    IndexMath math{b, loc};
    Value begin = math.mul(task, rowsPerTask);
    Value end = math.min(math.add(begin, rowsPerTask), math.constant(partials.rows));
    loopOver(b, loc, begin, end, 1, [&](OpBuilder &inner, Value row) {
      for (int64_t first = 0; first < vectors; first += 8)
        sumVectors(inner, row, first, std::min<int64_t>(8, vectors - first));
    });
  });
  return {name.str(), static_cast<int64_t>(llvm::divideCeil(partials.rows, rowsPerTask)), 0};
}

} // namespace sluice::cpu
