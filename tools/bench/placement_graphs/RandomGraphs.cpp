// Graphs of groups with random work, state and outputs.
#include "tools/bench/placement_graphs/GraphFamilies.h"
#include <algorithm>
#include <random>

namespace sluice::bench {

namespace {

/// Builds a graph whose first group, the input, and last group, which the host reads, are on the host.
class RandomGraph {
public:
  explicit RandomGraph(uint32_t seed) : random(seed) {}

  // The standard leaves the results of distributions to each library, so they are computed here from the engine's
  // numbers.
  double uniform(double low, double high) { return low + (high - low) * (double(random()) / double(random.max())); }
  uint32_t below(uint32_t limit) { return uint32_t(random() % limit); }

  /// A group with this much work (flops), state and output (bytes).
  uint32_t add(double flops, double state, double output, std::vector<uint32_t> inputs) {
    return graph.add(
        {flops, int64_t(state + output), int64_t(output), std::move(inputs), {}, false, uniform(0.7, 1.4)});
  }

  WorkGraph finish(uint32_t last) {
    uint32_t read = add(1e6, 0, 4, {last});
    graph.groups.front().isOnHost = graph.groups[read].isOnHost = true;
    return std::move(graph);
  }

private:
  std::mt19937 random;
  WorkGraph graph;
};

} // namespace

WorkGraph unrolledLstm(uint32_t groups, uint32_t seed) {
  RandomGraph graph(seed);
  uint32_t layers = 4, steps = groups / layers / 4;
  std::vector<uint32_t> hidden(layers), cell(layers);
  uint32_t input = graph.add(0, 0, 1e5, {});
  for (uint32_t t = 0; t < steps; ++t) {
    uint32_t below = input;
    for (uint32_t layer = 0; layer < layers; ++layer) {
      std::vector<uint32_t> operands{below};
      if (t > 0)
        operands.push_back(hidden[layer]);
      uint32_t gates = graph.add(5e8 * graph.uniform(0.5, 2), t == 0 ? 8e6 : 0, 1.6e6, operands);
      std::vector<uint32_t> state{gates};
      if (t > 0)
        state.push_back(cell[layer]);
      cell[layer] = graph.add(1e6, 0, 4e5, state);
      uint32_t squashed = graph.add(1e6, 0, 4e5, {cell[layer]});
      below = hidden[layer] = graph.add(1e6, 0, 4e5, {gates, squashed});
    }
  }
  return graph.finish(hidden.back());
}

WorkGraph residualBlocks(uint32_t groups, uint32_t seed) {
  RandomGraph graph(seed);
  std::vector<uint32_t> forward;
  uint32_t x = graph.add(0, 0, 2e6, {});
  uint32_t blocks = groups / 8;
  double width = 3e6;
  for (uint32_t b = 0; b < blocks; ++b) {
    if (b % (blocks / 4 + 1) == blocks / 4)
      width /= 2;
    double flops = 4e8 * graph.uniform(0.5, 2);
    uint32_t a = graph.add(flops, 4e5, width, {x});
    uint32_t n = graph.add(1e6, 1e3, width, {a});
    uint32_t c = graph.add(flops, 4e5, width, {n});
    x = graph.add(1e6, 1e3, width, {c, x});
    forward.insert(forward.end(), {a, n, c, x});
  }
  uint32_t gradient = graph.add(1e7, 0, width, {x});
  for (size_t i = forward.size(); i-- > 0;) {
    double flops = i % 2 == 1 ? 2e6 : 8e8 * graph.uniform(0.5, 2);
    gradient = graph.add(flops, 0, width, {gradient, forward[i]});
  }
  return graph.finish(gradient);
}

/// Adds about `budget` groups after `from`; returns the last one.
static uint32_t addSeriesParallel(RandomGraph &graph, uint32_t from, uint32_t budget) {
  uint32_t last = from;
  while (budget > 0) {
    if (budget < 8 || graph.below(3) != 0) {
      double flops = graph.uniform(1e6, 1e9), state = graph.uniform(0, 4e6);
      last = graph.add(flops, state, graph.uniform(1e4, 4e6), {last});
      --budget;
      continue;
    }
    uint32_t branches = 2 + graph.below(3), part = std::min(budget - 1, 8 + graph.below(60));
    std::vector<uint32_t> ends;
    for (uint32_t i = 0; i < branches; ++i)
      ends.push_back(addSeriesParallel(graph, last, std::max(1u, part / branches)));
    double flops = graph.uniform(1e6, 1e8);
    last = graph.add(flops, 0, graph.uniform(1e4, 4e6), ends);
    budget -= std::min(budget, branches * std::max(1u, part / branches) + 1);
  }
  return last;
}

WorkGraph seriesParallel(uint32_t groups, uint32_t seed) {
  RandomGraph graph(seed);
  uint32_t input = graph.add(0, 0, 1e6, {});
  return graph.finish(addSeriesParallel(graph, input, groups));
}

} // namespace sluice::bench
