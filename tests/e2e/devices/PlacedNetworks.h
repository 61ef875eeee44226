// What placements are tried on: networks of `models/`, and random training graphs with random pins, links and caps.
#pragma once

#include "tests/e2e/devices/Placed.h"

namespace sluice::test {

/// A program of `models/` and its batches of images and labels.
struct PlacedNetwork {
  std::string name, arguments;
  int64_t features, classes, rows;

  std::string model() const;
  Values batch(int step) const;
  /// Slow and fast links, one accelerator and two, with and without caps of 60 % of what everything on one needs.
  std::vector<PlacementCase> cases() const;
};

inline const PlacedNetwork kPlacedNetworks[] = {{"lenet", "--batch 64", 784, 10, 64},
                                                {"resnet56", "--batch 4", 3 * 32 * 32, 10, 4},
                                                {"alexnet_s", "--batch 2", 3 * 224 * 224, 1000, 2},
                                                {"resnet50", "--batch 2", 3 * 224 * 224, 1000, 2}};
inline constexpr int kPlacedNetworkCount = 4, kNetworkCases = 5;

/// What `randomPlacement` makes, as a network.
extern const PlacedNetwork kRandomNetwork;

/// One to three accelerators with links from 10 MB/s to 100 GB/s; a third of the graphs has pins, and half of them caps
/// from 30 % to 110 % of what everything on one accelerator needs. A seed gives one case.
PlacementCase randomPlacement(uint32_t seed);
/// The graph of this case alone.
std::string randomPlacedGraph(uint32_t seed);

} // namespace sluice::test
