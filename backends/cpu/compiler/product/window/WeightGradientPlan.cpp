#include "backends/cpu/compiler/product/window/WeightGradientPlan.h"

#include "backends/cpu/compiler/product/window/ConvolutionShape.h"

#include "llvm/Support/MathExtras.h"

#include <algorithm>

namespace sluice::cpu {

// The number of channels from which on the tiles' pixels are copied, the number of pixels of dY at a time, and the most
// pixels of x and dY: copies are on the stack.
static constexpr int64_t manyChannels = 64, pixelsOfCopy = 200, mostPixels = 2048;
// A task of copied pixels uses each copy of x for at least this many tiles, unless it has this many output channels, or
// there would be too few tasks, or its copies of dY would be too large.
static constexpr int64_t tilesOfCopy = 16, mostColumns = 256, enoughTasks = 16, mostBytesOfOutput = 512 << 10;

static int64_t elementBytes(const Convolution &op) { return op.element.getIntOrFloatBitWidth() / 8; }
static int64_t windowRows(const Convolution &op) { return op.height.kernel * op.width.kernel * op.inputChannels; }

bool leavesImage(const Convolution::Axis &axis) {
  int64_t last = (axis.output() - 1) * axis.stride + (axis.kernel - 1) * axis.dilation - axis.padBefore;
  return axis.padBefore > 0 || last >= axis.input;
}

WeightGradientPlan::WeightGradientPlan(const Convolution &op, const Target &target) {
  const Convolution::Axis &h = op.height, &w = op.width;
  int64_t channels = op.inputChannels, vectorLanes = target.lanes(op.element.getIntOrFloatBitWidth());
  copies = channels >= manyChannels && op.outputChannels >= manyChannels && op.outputChannels % vectorLanes == 0 &&
           planCopies(op) <= mostPixels;
  acrossTaps = !copies && !leavesImage(w) && w.dilation == 1;
  runLength = acrossTaps ? w.kernel * channels : channels;
  runsPerTapRow = acrossTaps ? 1 : w.kernel;
  int64_t onePass = maxTileRows(std::min<int64_t>(4, llvm::divideCeil(op.outputChannels, vectorLanes)), target);
  staticTiles = windowRows(op) <= onePass || (channels < 5 && (leavesImage(w) || leavesImage(h) || runLength < 5));
  planNarrow(op, vectorLanes);

  TileProblem problem;
  problem.elementBits = op.element.getIntOrFloatBitWidth();
  problem.rows = staticTiles ? windowRows(op) : runLength;
  problem.evenRows = staticTiles;
  problem.columns = op.outputChannels - narrow;
  problem.depth = copies ? pixelsOfCopy : h.output() * w.output();
  groups = chooseTiles(problem, target);
  if (!copies)
    planImages(op, target);
  planChunks(op, vectorLanes);
}

void WeightGradientPlan::planNarrow(const Convolution &op, int64_t vectorLanes) {
  int64_t last = op.outputChannels % vectorLanes, vectors = llvm::divideCeil(runLength, vectorLanes);
  bool cheaper = last * vectors * 5 < runLength * 4; // its tiles are smaller, so loads cost relatively more
  if (!staticTiles && op.outputChannels > vectorLanes && cheaper)
    narrow = last;
  double issued = llvm::divideCeil(op.outputChannels - narrow, vectorLanes) * runLength + narrow * vectors;
  lanes = op.outputChannels * runLength / (issued * vectorLanes);
}

// Enough images at a time to amortize loading a tile, few enough to stay in the cache.
void WeightGradientPlan::planImages(const Convolution &op, const Target &target) {
  const Convolution::Axis &h = op.height, &w = op.width;
  int64_t pixels = h.output() * w.output();
  int64_t bytes = (h.input * w.input * op.inputChannels + pixels * op.outputChannels) * elementBytes(op);
  prefetchOutput = bytes > target.l1;
  int64_t fitting = std::max<int64_t>(1, target.l1 / 2 / bytes);
  int64_t worthwhile = std::min<int64_t>(llvm::divideCeil(64, pixels), std::max<int64_t>(1, target.l2 / 2 / bytes));
  imagesAtOnce = std::max(fitting, worthwhile);
  pixelRowsAtOnce = h.output();
  if (bytes > target.l2 / 4) {
    int64_t rowBytes = (h.stride * w.input * op.inputChannels + w.output() * op.outputChannels) * elementBytes(op);
    int64_t worthwhileRows = llvm::divideCeil(160, w.output());
    pixelRowsAtOnce = std::min(pixelRowsAtOnce, std::max(worthwhileRows, target.l2 / 16 / rowBytes));
  }
  if (pixelRowsAtOnce < h.output())
    imagesAtOnce = 1; // else the next image's first rows would be summed before this one's last
  if (staticTiles && windowRows(op) <= tileRows()) { // the only tile keeps its sums
    imagesAtOnce = op.rows;
    pixelRowsAtOnce = h.output();
  }
}

// Returns the number of pixels of x and dY in a block.
int64_t WeightGradientPlan::planCopies(const Convolution &op) {
  const Convolution::Axis &h = op.height, &w = op.width;
  int64_t pixels = h.output() * w.output();
  imagesAtOnce = std::max<int64_t>(1, pixelsOfCopy / pixels);
  pixelRowsAtOnce = llvm::divideCeil(h.output(), llvm::divideCeil(pixels, pixelsOfCopy));
  int64_t inputRows = std::min(h.input, (pixelRowsAtOnce - 1) * h.stride + (h.kernel - 1) * h.dilation + 1);
  return imagesAtOnce * (inputRows * w.input + pixelRowsAtOnce * w.output());
}

void WeightGradientPlan::planChunks(const Convolution &op, int64_t vectorLanes) {
  partials.element = op.element;
  partials.place = op.workspace;
  partials.rows = windowRows(op);
  partials.columns = op.outputChannels;
  partials.width = llvm::alignTo(op.outputChannels, vectorLanes);
  constexpr int64_t mostWorkspace = 16 << 20;
  int64_t fitting = std::max<int64_t>(1, mostWorkspace / (partials.elementsPerChunk() * elementBytes(op)));
  int64_t chunks = std::min<int64_t>({16, fitting, op.rows});
  partials.rowsPerChunk = llvm::divideCeil(op.rows, chunks);
  // Each part of the rows reads all images again. If that is cheap, a smaller part of dW stays in a closer cache.
  parts = 1;
  int64_t work = 2 * multiplyAddsPerImage(op) * partials.rowsPerChunk / groups.count();
  if (!staticTiles && (chunks * groups.count() < 32 || work / op.height.kernel > (4 << 20)))
    parts = op.height.kernel;
  if (copies) {
    int64_t bytesOfGroup = imagesAtOnce * pixelRowsAtOnce * op.width.output() * groups.width * elementBytes(op);
    groupsPerTask = std::min<int64_t>(
        {int64_t(llvm::divideCeil(tilesOfCopy * parts, op.height.kernel * op.width.kernel)), mostColumns / groups.width,
         groups.count(), std::max<int64_t>(4, chunks * parts * groups.count() / enoughTasks),
         std::max<int64_t>(1, mostBytesOfOutput / bytesOfGroup)});
  }
  imagesAtOnce = std::min(imagesAtOnce, partials.rowsPerChunk);
}

} // namespace sluice::cpu
