// The graphs that the placement bench places: training steps of published networks, and random graphs.
#pragma once

#include "tools/bench/placement_graphs/WorkGraph.h"
#include <span>

namespace sluice::bench {

/// Graphs of one kind in any size: a network is repeated over batches or steps that share its weights until it has
/// about as many groups as asked for.
struct GraphFamily {
  const char *name;
  WorkGraph (*make)(uint32_t groups, uint32_t seed);
  bool isRandom;               ///< whether the seed matters
  int64_t publishedParameters; ///< elements; 0: none to compare with
};

std::span<const GraphFamily> graphFamilies();

/// Training steps over as many batches of 32 images or sentences as it takes. Sources of the dimensions are with each.
WorkGraph alexNet(uint32_t groups, uint32_t seed);
WorkGraph vgg16(uint32_t groups, uint32_t seed);
WorkGraph resNet50(uint32_t groups, uint32_t seed);
WorkGraph inceptionV3(uint32_t groups, uint32_t seed);
WorkGraph bertBase(uint32_t groups, uint32_t seed);
/// A training step on sentences of as many words as it takes.
WorkGraph gnmt(uint32_t groups, uint32_t seed);

/// A recurrent network, unrolled: 4 layers of cells, whose weights the first cell of a layer keeps.
WorkGraph unrolledLstm(uint32_t groups, uint32_t seed);
/// Residual blocks forward and backward: every backward group reads its forward group's output.
WorkGraph residualBlocks(uint32_t groups, uint32_t seed);
/// A chain whose links are groups or bundles of shorter chains.
WorkGraph seriesParallel(uint32_t groups, uint32_t seed);

} // namespace sluice::bench
