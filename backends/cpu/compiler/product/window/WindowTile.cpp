#include "backends/cpu/compiler/product/window/WindowTile.h"

#include "backends/cpu/compiler/machine/VectorAccess.h"
#include "backends/cpu/compiler/product/tile/IndexMath.h"

namespace sluice::cpu {

using namespace mlir;

// Runs shorter than this are unrolled whole.
static constexpr int64_t shortRun = 12;
// Rows of the window with fewer terms than this do not get separate sums.
static constexpr int64_t worthwhileSum = 128;

int64_t distanceOfPanels(const WindowSum &sum, const WindowSum::Phase &phase) {
  return phase.height.kernel * phase.width.kernel * sum.inputChannels * sum.panel;
}

namespace {

class WindowTile {
public:
  WindowTile(Location loc, const WindowSum &op, const WindowRow &row, const TileRun &run, const Tile &tile)
      : loc(loc), op(op), row(row), run(run), tile(tile) {}

  Sums sum(OpBuilder &b, Value pixel) {
    const WindowAxis &h = row.phase.height, &w = row.phase.width;
    IndexMath math{b, loc};
    Value corner =
        address(b, row.input, math.mul(math.add(math.mul(pixel, w.inputStep), w.inputStart), op.inputChannels));
    int64_t rowStride = h.tapStep * w.inputSize * op.inputChannels;
    int64_t kernelStride = h.kernelStep * w.kernel * op.inputChannels * op.panel;

    auto overHeight = [&](OpBuilder &body, Value tap, int64_t plus, Sums &carried) {
      IndexMath inner{body, loc};
      Value input = address(body, address(body, corner, inner.mul(tap, rowStride)), plus * rowStride);
      Value weights = address(body, address(body, row.weights, inner.mul(tap, kernelStride)), plus * kernelStride);
      addWindowRow(body, input, weights, carried);
    };
    auto overTaps = [&](Value first, Value last, const Sums &sums) {
      return accumulateOver(b, loc, first, last, 1, sums,
                            [&](OpBuilder &body, Value tap, Sums &carried) { overHeight(body, tap, 0, carried); });
    };
    Sums sums = tile.zeros(b);
    auto [first, last] = row.taps;
    if (!first) {
      bool isShort = row.phase.taps() * op.inputChannels <= 3 * shortRun;
      return accumulateOver(b, loc, h.taps, isShort ? h.taps : 1, sums, overHeight);
    }
    if (!row.tapsOfSecond.first)
      return overTaps(first, last, sums);
    // The second row is below the first, so its valid taps begin and end earlier.
    auto [firstOfSecond, lastOfSecond] = row.tapsOfSecond;
    active = {false, true};
    sums = overTaps(firstOfSecond, math.min(first, lastOfSecond), sums);
    active = {true, true};
    sums = overTaps(first, lastOfSecond, sums);
    active = {true, false};
    sums = overTaps(math.max(first, lastOfSecond), last, sums);
    return sums;
  }

private:
  // All taps along the width and all channels, for one tap along the height. If sums are long, groups of taps are
  // summed separately. A pixel's groups follow from the window and its position in the image, not from its tile.
  void addWindowRow(OpBuilder &b, Value input, Value weights, Sums &sums) {
    const WindowAxis &w = row.phase.width;
    int64_t channels = op.inputChannels;
    bool inParts = row.phase.taps() * channels > termsPerSum && w.taps * channels >= worthwhileSum;
    if (!inParts)
      return addTaps(b, 0, w.taps, input, weights, sums);
    int64_t size = std::clamp<int64_t>(termsPerSum / channels, 1, w.taps), whole = w.taps / size;
    if (isOneRun()) {
      sums = accumulateOver(b, loc, whole, 1, sums, [&](OpBuilder &body, Value group, int64_t plus, Sums &carried) {
        IndexMath math{body, loc};
        Value terms = math.mul(math.add(group, plus), size * channels);
        addGroup(body, 0, size, address(body, input, terms), address(body, weights, math.mul(terms, op.panel)),
                 carried);
      });
      if (w.taps % size)
        addGroup(b, whole * size, w.taps % size, input, weights, sums);
      return;
    }
    for (int64_t first = 0; first < w.taps; first += size)
      addGroup(b, first, std::min(size, w.taps - first), input, weights, sums);
  }

  // Whether all pixels of the tile read (tap, channel) as one contiguous run.
  bool isOneRun() const {
    const WindowAxis &w = row.phase.width;
    return w.tapStep == 1 && w.kernelStep == 1 && run.all(w.taps);
  }

  // Whether row `r` of the tile reads a tap in [first, last) along the width.
  bool reads(int64_t r, int64_t first, int64_t last) const {
    int64_t pixel = r % run.size;
    return active[r / run.size] && run.first[pixel] < last && first < run.last[pixel];
  }

  // The sum over the taps [first, first + taps), added to the pixels that have any of them.
  void addGroup(OpBuilder &b, int64_t first, int64_t taps, Value input, Value weights, Sums &sums) {
    Sums before = sums;
    if (op.inputChannels > termsPerSum)
      addTaps(b, first, taps, input, weights, sums); // a single tap is itself split into parts
    else
      sums = addApart(b, loc, tile, sums, [&](OpBuilder &body, Sums part) {
        addTaps(body, first, taps, input, weights, part);
        return part;
      });
    for (int64_t r = 0; r < tile.rows(); ++r)
      if (!reads(r, first, first + taps))
        std::copy_n(before.begin() + r * tile.vectors(), tile.vectors(), sums.begin() + r * tile.vectors());
  }

  void addTaps(OpBuilder &b, int64_t first, int64_t taps, Value input, Value weights, Sums &sums) {
    const WindowAxis &w = row.phase.width;
    auto addTapsFrom = [&](int64_t tap, int64_t count) {
      SmallVector<bool> valid;
      for (int64_t r = 0; r < tile.rows(); ++r)
        valid.push_back(reads(r, tap, tap + count));
      if (llvm::is_contained(valid, true))
        addRun(b, valid, address(b, input, tap * w.tapStep * op.inputChannels),
               address(b, weights, tap * w.kernelStep * op.inputChannels * op.panel), count * op.inputChannels, sums);
    };
    if (isOneRun())
      return addTapsFrom(first, taps);
    for (int64_t tap = first; tap < first + taps; ++tap)
      addTapsFrom(tap, 1);
  }

  // `length` values that are contiguous in the input of each pixel, and rows of the panel.
  void addRun(OpBuilder &b, ArrayRef<bool> valid, Value input, Value weights, int64_t length, Sums &sums) {
    const WindowAxis &w = row.phase.width;
    int64_t pixelStride = w.inputStep * op.inputChannels;
    int64_t unroll =
        length <= shortRun ? length : std::min<int64_t>(pixelStride, tile.rows() * tile.vectors() >= 16 ? 2 : 4);
    bool overlapping = w.taps > 1 && length <= shortRun;
    auto step = [&](OpBuilder &body, Value k, int64_t plus, Sums &carried) {
      IndexMath inner{body, loc};
      Value a = address(body, address(body, input, k), plus);
      if (overlapping)
        a = launder(body, loc, a);
      SmallVector<Value> aAddresses;
      for (int64_t r = 0; r < tile.rows(); ++r)
        aAddresses.push_back(valid[r] ? address(body, a, r / run.size * row.pitch + r % run.size * pixelStride)
                                      : Value());
      Value bAddress = address(body, address(body, weights, inner.mul(k, op.panel)), plus * op.panel);
      tile.multiplyAdd(body, carried, aAddresses, bAddress);
    };
    sums = op.inputChannels > termsPerSum ? accumulateInParts(b, loc, tile, length, unroll, sums, step)
                                          : accumulateOver(b, loc, length, unroll, sums, step);
  }

  Value address(OpBuilder &b, Value base, Value offset) { return elementAddress(b, loc, op.element, base, offset); }
  Value address(OpBuilder &b, Value base, int64_t offset) { return elementAddress(b, loc, op.element, base, offset); }

  Location loc;
  const WindowSum &op;
  const WindowRow &row;
  const TileRun &run;
  const Tile &tile;
  std::array<bool, 2> active{true, true}; // rows of outputs that have the current tap along the height
};

} // namespace

Sums sumOverWindow(OpBuilder &b, Location loc, const WindowSum &sum, const WindowRow &row, const TileRun &run,
                   const Tile &tile, Value pixel) {
  return WindowTile(loc, sum, row, run, tile).sum(b, pixel);
}

} // namespace sluice::cpu
