#include "tools/compiler/placement/GroupLaunches.h"

#include "ir/text/DiagnosticText.h"
#include <deque>
#include <map>
#include <tuple>

using sluice::passes::PlacedGroup;

namespace sluice::compiler {

/// A kernel's name without the number that tells it from others.
static std::string baseOf(llvm::StringRef name) { return name.rtrim("0123456789").rtrim('_').str(); }

std::vector<std::optional<size_t>> findGroupLaunches(const passes::PlacementGraph &graph,
                                                     llvm::ArrayRef<uint32_t> devices, const Evaluation &evaluation) {
  std::map<std::tuple<size_t, std::string, std::string>, std::deque<size_t>> open;
  for (auto [i, group] : llvm::enumerate(graph.groups))
    if (group.kind == PlacedGroup::Launch)
      open[{devices[i], ir::printPlace(group.fusion.ops.back()->getLoc()), baseOf(group.name)}].push_back(i);
  std::vector<std::optional<size_t>> launches(graph.groups.size());
  const runtime::Plan &plan = evaluation.plan;
  for (auto [i, action] : llvm::enumerate(evaluation.entryPoint().actions)) {
    const runtime::Launch *launch = action.launch();
    if (!launch)
      continue;
    size_t device = plan.kernels[launch->kernel].device;
    llvm::StringRef name = launch->name;
    if (device != 0)
      name.consume_front(plan.devices[device].name + "_");
    std::deque<size_t> &groups = open[{device, launch->source, baseOf(name)}];
    if (groups.empty())
      continue;
    launches[groups.front()] = i;
    groups.pop_front();
  }
  return launches;
}

int64_t workspaceOf(const passes::PlacementGraph &graph, uint32_t group, const Evaluation &evaluation, size_t action) {
  // A workspace is the last buffer of a launch, behind what it reads and leaves.
  const std::vector<runtime::Buffer> &buffers = evaluation.entryPoint().actions[action].launch()->buffers;
  auto written = size_t(llvm::count_if(buffers, [](const runtime::Buffer &buffer) { return buffer.isWritten(); }));
  return written > graph.flow.launches[group].outputs.size() ? buffers.back().bytes : 0;
}

} // namespace sluice::compiler
