#include "passes/assign/search/GroupLaunches.h"

#include "ir/text/DiagnosticText.h"
#include <map>
#include <tuple>

namespace sluice::passes {

/// A kernel's name without its distinguishing number, and that number.
static std::pair<std::string, unsigned> partsOf(llvm::StringRef name) {
  llvm::StringRef base = name.rtrim("0123456789");
  unsigned number = 0;
  name.drop_front(base.size()).getAsInteger(10, number);
  return {base.rtrim('_').str(), number};
}

std::vector<std::optional<GroupLaunch>> findGroupLaunches(const PlacementGraph &graph, llvm::ArrayRef<uint32_t> devices,
                                                          const Evaluation &evaluation) {
  using Key = std::tuple<size_t, std::string, std::string>;             // device, line, base
  std::map<Key, std::vector<std::pair<unsigned, GroupLaunch>>> actions; // by number: program order
  const runtime::Plan &plan = evaluation.plan;
  for (auto [i, listed] : llvm::enumerate(evaluation.actions())) {
    const runtime::Launch *launch = listed.action->launch();
    if (!launch)
      continue;
    size_t device = plan.kernels[launch->kernel].device;
    llvm::StringRef name = launch->name;
    if (device != 0)
      name.consume_front(plan.devices[device].name + "_");
    auto [base, number] = partsOf(name);
    actions[{device, launch->source, base}].push_back({number, {i, launch}});
  }
  for (auto &[key, list] : actions)
    llvm::sort(list, [](const auto &a, const auto &b) {
      return std::pair(a.first, a.second.action) < std::pair(b.first, b.second.action);
    });
  std::map<Key, size_t> taken;
  std::vector<std::optional<GroupLaunch>> launches(graph.groups.size());
  for (auto [i, group] : llvm::enumerate(graph.groups)) {
    if (group.kind != PlacedGroup::Launch)
      continue;
    Key key{devices[i], ir::printLocation(group.fusion.ops.back()->getLoc()), partsOf(group.name).first};
    const auto &list = actions[key];
    if (size_t next = taken[key]++; next < list.size())
      launches[i] = list[next].second;
  }
  return launches;
}

int64_t workspaceOf(const PlacementGraph &graph, uint32_t group, const runtime::Launch &launch) {
  // A workspace is the last buffer of a launch, after its operands and results.
  const std::vector<runtime::Buffer> &buffers = launch.buffers;
  auto written = size_t(llvm::count_if(buffers, [](const runtime::Buffer &buffer) { return buffer.isWritten(); }));
  return written > graph.flow.launches[group].outputs.size() ? buffers.back().bytes : 0;
}

} // namespace sluice::passes
