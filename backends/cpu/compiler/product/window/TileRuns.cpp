#include "backends/cpu/compiler/product/window/TileRuns.h"

#include "backends/cpu/compiler/product/tile/IndexMath.h"
#include "backends/cpu/compiler/product/tile/Tile.h"

#include "llvm/Support/MathExtras.h"

namespace sluice::cpu {

using namespace mlir;

bool TileRun::all(int64_t taps) const {
  return llvm::all_of(first, [](int64_t tap) { return tap == 0; }) &&
         llvm::all_of(last, [&](int64_t tap) { return tap == taps; });
}

int64_t TileRun::pixelsWith(int64_t tap) const {
  return llvm::count_if(llvm::seq<int64_t>(size), [&](int64_t r) { return first[r] <= tap && tap < last[r]; });
}

std::pair<int64_t, int64_t> validTaps(const WindowAxis &axis, int64_t output) {
  int64_t first = 0, last = axis.taps;
  while (first < last && !axis.valid(output, first))
    ++first;
  while (last > first && !axis.valid(output, last - 1))
    --last;
  return {first, last};
}

int64_t WindowAxis::validTaps() const {
  int64_t count = 0;
  for (int64_t output = 0; output < outputs; ++output) {
    auto [first, last] = cpu::validTaps(*this, output);
    count += last - first;
  }
  return count;
}

SmallVector<TileRun> tileRuns(const WindowAxis &axis, int64_t rows) {
  SmallVector<TileRun> runs;
  int64_t tiles = llvm::divideCeil(axis.outputs, rows);
  for (int64_t tile = 0, start = 0; tile < tiles; ++tile) {
    int64_t size = axis.outputs / tiles + (tile < axis.outputs % tiles);
    TileRun run{start, size, 1, {}, {}};
    for (int64_t r = 0; r < size; ++r) {
      auto [first, last] = validTaps(axis, start + r);
      run.first.push_back(first);
      run.last.push_back(last);
    }
    if (!runs.empty() && runs.back().size == size && runs.back().first == run.first && runs.back().last == run.last)
      ++runs.back().count;
    else
      runs.push_back(run);
    start += size;
  }
  return runs;
}

void forEachTile(OpBuilder &b, Location loc, const TileRun &run, llvm::function_ref<void(OpBuilder &, Value)> emit) {
  IndexMath math{b, loc};
  if (run.count == 1)
    return emit(b, math.constant(run.start));
  loopOver(b, loc, math.constant(run.start), math.constant(run.start + run.size * run.count), run.size, emit);
}

Value inputPlace(OpBuilder &b, Location loc, const WindowAxis &axis, Value j) {
  IndexMath math{b, loc};
  return math.add(math.mul(j, axis.inputStep), axis.inputStart);
}

std::pair<Value, Value> validTapsAt(OpBuilder &b, Location loc, const WindowAxis &axis, Value place) {
  if (axis.alwaysValid())
    return {};
  IndexMath math{b, loc};
  auto tapFrom = [&](Value distance) { return math.ceilDiv(math.max(math.constant(0), distance), axis.tapStep); };
  return {tapFrom(math.sub(math.constant(0), place)),
          math.min(math.constant(axis.taps), tapFrom(math.sub(math.constant(axis.inputSize), place)))};
}

} // namespace sluice::cpu
