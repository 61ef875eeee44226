// Certified gaps of the two-way placement on large graphs: placement_bench [SECONDS]. Every graph has a memory cap of
// 60 % of what all-accelerator needs. Prints one row a graph, and the median and worst gap.
#include "passes/analysis/TwoWayPlacement.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>

using namespace sluice::passes;
using Side = TwoWayProblem::Side;

namespace {

/// Builds graphs of groups whose times follow from work and bytes on a host and an accelerator some 20 times as fast.
class GraphBuilder {
public:
  explicit GraphBuilder(uint32_t seed) : random(seed) {}

  double uniform(double low, double high) { return std::uniform_real_distribution<>(low, high)(random); }
  uint32_t below(uint32_t limit) { return uint32_t(random() % limit); }

  /// A group with this much work (flops), state (bytes) and output (bytes); gives its number.
  uint32_t add(double flops, double state, double output, std::vector<uint32_t> inputs) {
    uint32_t number = uint32_t(problem.groups.size());
    double scale = uniform(0.7, 1.4);
    int64_t bytes = int64_t(state + output);
    TwoWayProblem::Group group{
        {picoseconds(flops * scale / 3e11 + 1e-6), picoseconds(flops / 6e12 + 5e-6)}, {bytes, bytes}, {}};
    problem.groups.push_back(group);
    problem.values.push_back(
        {number, {}, {picoseconds(5e-6 + output / 12e9), picoseconds(5e-6 + output / 12e9)}, int64_t(output)});
    for (uint32_t input : inputs)
      problem.values[input].consumers.push_back(number);
    return number;
  }

  /// The input is on the host, and so is what is read at the end; the cap is a share of what all-accelerator needs.
  TwoWayProblem finish(double share) {
    problem.groups.front().pinned = Side::Host;
    problem.groups.back().pinned = Side::Host;
    std::vector<Side> all(problem.groups.size(), Side::Accelerator);
    all.front() = all.back() = Side::Host;
    problem.memoryCaps[Side::Accelerator] = int64_t(share * double(memoryOf(problem, all)[Side::Accelerator]));
    return std::move(problem);
  }

private:
  static int64_t picoseconds(double seconds) { return int64_t(seconds * 1e12); }
  std::mt19937 random;
  TwoWayProblem problem;
};

/// A recurrent network, unrolled: layers x steps cells that share a layer's weights, which the first cell of a layer
/// keeps.
TwoWayProblem unrolledLstm(uint32_t nodes, uint32_t seed) {
  GraphBuilder graph(seed);
  uint32_t layers = 4, steps = nodes / layers / 4;
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
  graph.add(1e6, 0, 4, {hidden.back()});
  return graph.finish(0.6);
}

/// Residual blocks forward and backward: every backward op reads its forward op's output.
TwoWayProblem residual(uint32_t nodes, uint32_t seed) {
  GraphBuilder graph(seed);
  std::vector<uint32_t> forward;
  uint32_t x = graph.add(0, 0, 2e6, {});
  uint32_t blocks = nodes / 8;
  double width = 3e6;
  for (uint32_t b = 0; b < blocks; ++b) {
    if (b % (blocks / 4 + 1) == blocks / 4)
      width /= 2;
    double flops = 4e8 * graph.uniform(0.5, 2);
    uint32_t a = graph.add(flops, 4e5, width, {x});
    uint32_t n = graph.add(1e6, 1e3, width, {a});
    uint32_t c = graph.add(flops, 4e5, width, {n});
    forward.insert(forward.end(), {a, n, c});
    x = graph.add(1e6, 1e3, width, {c, x});
    forward.push_back(x);
  }
  uint32_t gradient = graph.add(1e7, 0, width, {x});
  for (size_t i = forward.size(); i-- > 0;)
    gradient =
        graph.add(i % 4 == 1 || i % 4 == 3 ? 2e6 : 8e8 * graph.uniform(0.5, 2), 0, width, {gradient, forward[i]});
  graph.add(1e6, 0, 4, {gradient});
  return graph.finish(0.6);
}

/// Random series-parallel graphs: a chain whose links are groups or bundles of shorter chains.
uint32_t seriesParallel(GraphBuilder &graph, uint32_t from, uint32_t budget) {
  uint32_t last = from;
  while (budget > 0) {
    if (budget < 8 || graph.below(3) != 0) {
      last = graph.add(graph.uniform(1e6, 1e9), graph.uniform(0, 4e6), graph.uniform(1e4, 4e6), {last});
      --budget;
      continue;
    }
    uint32_t branches = 2 + graph.below(3), part = std::min(budget - 1, 8 + graph.below(60));
    std::vector<uint32_t> ends;
    for (uint32_t i = 0; i < branches; ++i)
      ends.push_back(seriesParallel(graph, last, std::max(1u, part / branches)));
    last = graph.add(graph.uniform(1e6, 1e8), 0, graph.uniform(1e4, 4e6), ends);
    budget -= std::min(budget, branches * std::max(1u, part / branches) + 1);
  }
  return last;
}

TwoWayProblem randomSeriesParallel(uint32_t nodes, uint32_t seed) {
  GraphBuilder graph(seed);
  uint32_t end = seriesParallel(graph, graph.add(0, 0, 1e6, {}), nodes);
  graph.add(1e6, 0, 4, {end});
  return graph.finish(0.6);
}

struct Family {
  const char *name;
  TwoWayProblem (*make)(uint32_t nodes, uint32_t seed);
};

} // namespace

int main(int argc, char **argv) {
  double seconds = argc > 1 ? std::atof(argv[1]) : 1;
  static constexpr Family families[] = {
      {"unrolled LSTM", unrolledLstm}, {"residual", residual}, {"series-parallel", randomSeriesParallel}};
  std::vector<double> gaps;
  std::printf("%-16s %6s %5s %9s %12s %10s\n", "graph", "groups", "seed", "gap %", "cost ms", "seconds");
  for (uint32_t nodes : {2000u, 4000u})
    for (const Family &family : families)
      for (uint32_t seed = 0; seed < 5; ++seed) {
        TwoWayProblem problem = family.make(nodes, seed);
        auto start = std::chrono::steady_clock::now();
        std::optional<TwoWayPlacement> placement = placeTwoWay(problem, std::chrono::duration<double>(seconds));
        std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
        if (!placement)
          continue;
        gaps.push_back(100 * placement->gap());
        std::printf("%-16s %6zu %5u %9.3f %12.3f %10.3f\n", family.name, problem.groups.size(), seed, gaps.back(),
                    double(placement->cost) / 1e9, took.count());
      }
  std::sort(gaps.begin(), gaps.end());
  std::printf("median gap %.3f %%, worst %.3f %%\n", gaps[gaps.size() / 2], gaps.back());
}
