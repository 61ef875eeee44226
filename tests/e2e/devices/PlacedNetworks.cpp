#include "tests/e2e/devices/PlacedNetworks.h"

#include "tests/e2e/Portable.h"
#include "tests/e2e/devices/RandomGraph.h"
#include <cmath>
#include <random>

namespace sluice::test {

const PlacedNetwork kRandomNetwork{"random", "", kRandomFeatures, kRandomClasses, 64};

std::string PlacedNetwork::model() const { return modelText(name, arguments + " --input f32"); }

Values PlacedNetwork::batch(int step) const {
  std::string key = name + "/step" + std::to_string(step);
  std::vector<float> x = portableUniform(key, size_t(rows * features), -1, 1);
  std::vector<int64_t> labels = portableIntegers(key + "/label", size_t(rows), uint64_t(classes));
  return {{"image", {x.begin(), x.end()}}, {"label", {labels.begin(), labels.end()}}};
}

/// The memory of everything on the first accelerator.
static int64_t bytesOfAll(const PlacementCase &asked) {
  return evaluated(everythingOn(asked, "acc0"), {}).peakBytes[1];
}

std::vector<PlacementCase> PlacedNetwork::cases() const {
  constexpr double kCap = 0.6;
  PlacementCase plain;
  plain.model = model();
  auto cap = int64_t(kCap * double(bytesOfAll(plain)));
  std::vector<PlacementCase> made;
  for (double bytesPerSecond : {1e7, 3e8, 1e10}) {
    plain.bytesPerSecond = bytesPerSecond;
    made.push_back(plain);
  }
  for (int accelerators : {1, 2}) {
    PlacementCase capped = plain;
    capped.accelerators = accelerators;
    capped.caps.assign(size_t(accelerators), cap);
    made.push_back(capped);
  }
  return made;
}

std::string randomPlacedGraph(uint32_t seed) { return randomGraph(seed, kRandomNetwork.rows); }

PlacementCase randomPlacement(uint32_t seed) {
  std::mt19937 random(seed);
  auto below = [&](uint32_t limit) { return uint32_t(random() % limit); };
  auto uniform = [&](double low, double high) { return low + (high - low) * double(random()) / 4294967296.0; };
  PlacementCase made;
  made.model = randomPlacedGraph(seed);
  made.accelerators = int(1 + below(3));
  made.bytesPerSecond = std::pow(10, uniform(7, 11));
  made.latency = std::pow(10, uniform(-6, -4));
  if (below(3) == 0)
    made.model = sparselyPinned(made.model, made.devices(), seed, /*oneIn=*/6);
  if (below(2) == 0) {
    int64_t whole = bytesOfAll(made);
    for (int i = 0; i < made.accelerators; ++i)
      made.caps.push_back(int64_t(double(whole) * uniform(0.3, 1.1)));
  }
  return made;
}

} // namespace sluice::test
