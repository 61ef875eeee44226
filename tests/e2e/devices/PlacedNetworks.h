// Placement test cases: networks of `models/`, and random training graphs with random pins, links and caps.
#pragma once

#include "tests/e2e/devices/Placed.h"

namespace sluice::test {

/// A program of `models/` and its batches of images and labels.
struct PlacedNetwork {
  std::string name, arguments;
  int64_t features, classes, rows;

  std::string model() const;
  Values batch(int step) const;
  /// Slow and fast links, one and two accelerators, without caps and with caps of 60 % of the memory of everything on
  /// one.
  std::vector<PlacementCase> cases() const;
};

inline const PlacedNetwork kPlacedNetworks[] = {{"lenet", "--batch 64", 784, 10, 64},
                                                {"resnet56", "--batch 4", 3 * 32 * 32, 10, 4},
                                                {"alexnet_s", "--batch 2", 3 * 224 * 224, 1000, 2},
                                                {"resnet50", "--batch 2", 3 * 224 * 224, 1000, 2}};
inline constexpr int kPlacedNetworkCount = 4, kNetworkCases = 5;

/// The graphs of `randomPlacement` as a network.
extern const PlacedNetwork kRandomNetwork;

/// One to three accelerators with links from 10 MB/s to 100 GB/s. A third of the graphs has pins. Half of them have
/// caps from 30 % to 110 % of the memory of everything on one accelerator. A seed determines one case.
PlacementCase randomPlacement(uint32_t seed);
/// The graph of this case, without placement.
std::string randomPlacedGraph(uint32_t seed);

} // namespace sluice::test
