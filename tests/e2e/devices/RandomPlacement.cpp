#include "tests/e2e/devices/RandomPlacement.h"

#include "tests/e2e/Portable.h"
#include "tests/e2e/devices/RandomGraph.h"
#include <cmath>
#include <random>

namespace sluice::test {

PlacementCase randomPlacement(uint32_t seed) {
  constexpr int64_t kRows = kRandomPlacementRows;
  std::mt19937 random(seed);
  auto below = [&](uint32_t limit) { return uint32_t(random() % limit); };
  auto uniform = [&](double low, double high) { return low + (high - low) * double(random()) / 4294967296.0; };
  PlacementCase made;
  made.model = randomGraph(seed, kRows);
  made.accelerators = int(1 + below(3));
  made.bytesPerSecond = std::pow(10, uniform(7, 11));
  made.latency = std::pow(10, uniform(-6, -4));
  if (below(3) == 0)
    made.model = sparselyPinned(made.model, made.devices(), seed, /*oneIn=*/6);
  if (below(2) == 0) {
    int64_t whole = evaluated(everythingOn(made, "acc0"), {}).peakBytes[1];
    for (int i = 0; i < made.accelerators; ++i)
      made.caps.push_back(int64_t(double(whole) * uniform(0.3, 1.1)));
  }
  return made;
}

Values randomPlacementBatch(int step) {
  std::string key = "placement/step" + std::to_string(step);
  std::vector<float> x = portableUniform(key, size_t(kRandomPlacementRows * kRandomFeatures), -1, 1);
  std::vector<int64_t> labels = portableIntegers(key + "/label", size_t(kRandomPlacementRows), kRandomClasses);
  return {{"image", {x.begin(), x.end()}}, {"label", {labels.begin(), labels.end()}}};
}

} // namespace sluice::test
