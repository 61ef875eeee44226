#include "tests/e2e/devices/Assignments.h"

#include "passes/assign/search/GroupLaunches.h"
#include "tests/e2e/devices/RandomGraph.h"
#include "tests/e2e/devices/Trained.h"
#include "tools/compiler/placement/Placement.h"
#include <algorithm>
#include <cmath>
#include <fstream>
#include <random>
#include <sstream>
#include <stdexcept>

using sluice::passes::PlacedGroup;
using sluice::passes::PlacementGraph;

namespace sluice::test {

struct Assignments::Model {
  explicit Model(const PlacementCase &asked)
      : trained(everythingOn(asked, "cpu")),
        setting(valueOf(compiler::preparePlacement(*trained.module, {}, trained.inputs, asked.request()))) {}

  Trained trained;
  passes::PlacementSetting setting;
};

Assignments::Assignments(const PlacementCase &asked) {
  setenv("SLUICE_CALIBRATION", asked.calibration.c_str(), /*replace=*/1);
  model = std::make_unique<Model>(asked);
  const PlacementGraph &graph = model->setting.graph();
  for (uint32_t group = 0; group < graph.groups.size(); ++group) {
    std::vector<uint32_t> can;
    for (uint32_t device = 0; device < graph.deviceCount(); ++device)
      if (graph.problem.canRun(group, device))
        can.push_back(device);
    total *= int64_t(can.size());
    open.emplace_back(group, std::move(can));
  }
}

Assignments::~Assignments() = default;

std::vector<uint32_t> Assignments::at(int64_t number) const {
  std::vector<uint32_t> devices;
  for (const auto &[group, can] : open) {
    devices.push_back(can[size_t(number) % can.size()]);
    number /= int64_t(can.size());
  }
  return devices;
}

std::vector<uint32_t> Assignments::on(uint32_t device) const {
  std::vector<uint32_t> devices;
  for (const auto &[group, can] : open)
    devices.push_back(llvm::is_contained(can, device) ? device : can.front());
  return devices;
}

passes::Candidate Assignments::compiled(const std::vector<uint32_t> &devices) {
  return passes::tryStrategy(model->setting, "one", [&](PlacementGraph &graph) {
    bool counts = ir::EntryOp(graph.entry).getSymName() == model->setting.entry;
    return counts ? passes::Assignment{devices, {}} : passes::Assignment{{}, {passes::Obstacle::Unsupported, "free"}};
  });
}

passes::AssignmentFigures Assignments::judged(const std::vector<uint32_t> &devices,
                                              const passes::Evaluation &plan) const {
  const passes::PlacementSetting &setting = model->setting;
  passes::AssignmentModel judge(setting.graph(), setting.target(), setting.costs.model, setting.costs.hostRunsHere);
  auto launches = passes::findGroupLaunches(setting.graph(), devices, plan);
  for (uint32_t group = 0; group < launches.size(); ++group)
    if (launches[group])
      judge.setKernel(group, devices[group], plan.workSeconds[launches[group]->action],
                      passes::workspaceOf(setting.graph(), group, *launches[group]->launch));
  return judge.judge(devices);
}

Assignments::Best Assignments::best() {
  Best best;
  for (int64_t number = 0; number < count(); ++number) {
    passes::Candidate candidate = compiled(at(number));
    double sum = candidate.evaluation->serialSeconds;
    best.serialSeconds = number == 0 ? sum : std::min(best.serialSeconds, sum);
    if (candidate.isPossible())
      best.seconds = std::min(best.seconds.value_or(INFINITY), candidate.evaluation->seconds);
  }
  return best;
}

PlacementCase smallPlacement(uint32_t seed) {
  std::mt19937 random(seed);
  auto below = [&](uint32_t limit) { return uint32_t(random() % limit); };
  auto uniform = [&](double low, double high) { return low + (high - low) * double(random()) / 4294967296.0; };
  PlacementCase made;
  made.accelerators = int(1 + seed % 3);
  bool isTrained = below(2);
  uint32_t most = made.accelerators == 1 ? 4 : 2;
  made.model = smallGraph(seed, isTrained ? 1 + below(made.accelerators == 1 ? 2 : 1) : 1 + below(most), isTrained);
  made.bytesPerSecond = std::pow(10, uniform(8, 11));
  made.latency = std::pow(10, uniform(-7, -5));
  if (below(2) == 0) {
    Assignments all(made);
    int64_t whole = all.compiled(all.on(1)).evaluation->peakBytes[1];
    for (int i = 0; i < made.accelerators; ++i)
      made.caps.push_back(int64_t(double(whole) * uniform(0.3, 1.1)));
  }
  return made;
}

std::string graphNamed(const std::string &name) {
  std::ifstream file(std::string(SLUICE_GRAPHS) + "/" + name + ".mlir");
  std::stringstream text;
  text << file.rdbuf();
  if (!file)
    throw std::runtime_error("there is no graph " + name);
  return text.str();
}

} // namespace sluice::test
