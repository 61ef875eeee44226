// Certified gaps of placements on large graphs. Every graph has a memory cap of 60 % of the memory that the whole graph
// needs on one accelerator, which N accelerators share. Prints one row per graph, and the median and worst gap: to a
// certified bound for one accelerator, to the bound of one merged accelerator for several.
#include "runtime/help/Arguments.h"
#include "runtime/help/HelpFormatter.h"
#include "tools/bench/placement_graphs/GraphFamilies.h"

#include <algorithm>
#include <chrono>
#include <cstdio>

using namespace sluice::passes;
using namespace sluice::bench;

int main(int argc, char **argv) {
  double effort = 6e6; // nodes of the graphs that are cut
  int accelerators = 1;
  CLI::App app("Measures the certified gaps of placements on large graphs.", "placement_bench");
  sluice::help::setHelp(app);
  sluice::help::beginGroup(app, "Search");
  app.add_option("--effort", effort, "Number of graph nodes that the search may cut")
      ->type_name("N")
      ->check(sluice::help::number(1, 1e12))
      ->capture_default_str();
  app.add_option("--devices", accelerators, "Number of accelerators that share the memory cap")
      ->type_name("N")
      ->check(sluice::help::wholeNumber(1, 64))
      ->capture_default_str();
  if (std::optional<int> code = sluice::help::parse(app, argc, argv))
    return *code;
  std::vector<double> gaps;
  std::printf("%-16s %6s %5s %9s %12s %10s\n", "graph", "groups", "seed", "gap %", "cost ms", "seconds");
  for (uint32_t groups : {2000u, 4000u})
    for (const GraphFamily &family : graphFamilies())
      for (uint32_t seed = 0; seed < (family.isRandom ? 5 : 1); ++seed) {
        PlacementProblem problem = placementProblem(family.make(groups, seed), uint32_t(accelerators), 0.6);
        auto start = std::chrono::steady_clock::now();
        std::optional<Placement> placement = placeGroups(problem, int64_t(effort));
        std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
        std::printf("%-16s %6zu %5u ", family.name, problem.groups.size(), seed);
        if (!placement) {
          std::printf("no placement found\n");
          continue;
        }
        gaps.push_back(100 * placement->gap());
        std::printf("%9.3f %12.3f %10.3f\n", gaps.back(), double(placement->cost) / 1e9, took.count());
      }
  std::sort(gaps.begin(), gaps.end());
  std::printf("%zu graphs: median gap %.3f %%, worst %.3f %%\n", gaps.size(), gaps[gaps.size() / 2], gaps.back());
}
