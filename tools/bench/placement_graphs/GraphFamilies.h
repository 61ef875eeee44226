// The graphs that the placement bench places: training steps of published networks, and random graphs.
#pragma once

#include "tools/bench/placement_graphs/WorkGraph.h"
#include <span>

namespace sluice::bench {

/// Graphs of one kind in any size. A network is repeated over batches or steps that share its weights until it has
/// about the requested number of groups.
struct GraphFamily {
  const char *name;
  WorkGraph (*make)(uint32_t groups, uint32_t seed);
  bool isRandom;               ///< whether the seed matters
  int64_t publishedParameters; ///< elements; 0: unpublished
};

std::span<const GraphFamily> graphFamilies();

/// Training steps over a number of batches of 32 images or sentences that depends on the size. Each network cites the
/// sources of its dimensions.
WorkGraph alexNet(uint32_t groups, uint32_t seed);
WorkGraph vgg16(uint32_t groups, uint32_t seed);
WorkGraph resNet50(uint32_t groups, uint32_t seed);
WorkGraph inceptionV3(uint32_t groups, uint32_t seed);
WorkGraph bertBase(uint32_t groups, uint32_t seed);
/// A training step on sentences whose length depends on the size.
WorkGraph gnmt(uint32_t groups, uint32_t seed);

/// An unrolled recurrent network: 4 layers of cells, whose weights belong to the first cell of a layer.
WorkGraph unrolledLstm(uint32_t groups, uint32_t seed);
/// Residual blocks forward and backward: every backward group reads its forward group's output.
WorkGraph residualBlocks(uint32_t groups, uint32_t seed);
/// A chain whose links are groups or bundles of shorter chains.
WorkGraph seriesParallel(uint32_t groups, uint32_t seed);

} // namespace sluice::bench
