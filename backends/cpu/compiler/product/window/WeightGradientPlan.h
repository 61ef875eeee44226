// How the weight gradient of a convolution is split into tasks, blocks and tiles; see WeightGradient.cpp.
#pragma once

#include "backends/cpu/compiler/product/Contraction.h"
#include "backends/cpu/compiler/product/matmul/SumPartials.h"
#include "backends/cpu/compiler/product/tile/TileChoice.h"

namespace sluice::cpu {

struct WeightGradientPlan {
  WeightGradientPlan(const Convolution &op, const Target &target);

  bool staticTiles = false;                 // the rows of every tile are known when the code is generated
  bool acrossTaps = false;                  // a row of taps reads one contiguous run of x
  int64_t runLength = 1, runsPerTapRow = 1; // contiguous rows of dW at one address; how many form a row of taps
  bool copies = false;                      // tasks copy the pixels of a block (PixelCopies.h)
  int64_t imagesAtOnce = 1, pixelRowsAtOnce = 1, parts = 1, groupsPerTask = 1;
  bool prefetchOutput = false; // dY does not stay in the first-level cache
  // The last output channels, if they would fill only a small part of a vector: lanes go along the runs instead.
  int64_t narrow = 0;
  ColumnGroups groups; // of the other channels
  Partials partials;
  double lanes = 1; // share of active lanes

  int64_t tileRows() const { return groups.full ? groups.rows : groups.tailRows; }

private:
  void planNarrow(const Convolution &op, int64_t vectorLanes);
  void planImages(const Convolution &op, const Target &target);
  int64_t planCopies(const Convolution &op);
  void planChunks(const Convolution &op, int64_t vectorLanes);
};

// Whether a window may extend beyond the image along this axis.
bool leavesImage(const Convolution::Axis &axis);

} // namespace sluice::cpu
