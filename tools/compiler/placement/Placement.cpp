#include "tools/compiler/placement/Placement.h"

#include "passes/Nearest.h"
#include "passes/Passes.h"
#include "passes/assign/search/PlacementSearch.h"
#include "tools/compiler/Diagnostics.h"
#include "tools/compiler/Phases.h"
#include "tools/compiler/placement/costs/Costs.h"
#include "tools/compiler/placement/report/Describe.h"
#include "tools/compiler/placement/report/PlacementFile.h"
#include "llvm/ADT/StringExtras.h"
#include <fmt/format.h>

using namespace mlir;

namespace sluice::compiler {

/// Whether the target has all devices that the model names.
static llvm::Error checkDevices(ModuleOp module) {
  ir::DiagnosticText diagnostics(module.getContext());
  OwningOpRef<ModuleOp> copy(module.clone());
  if (succeeded(passes::placeValues(*copy)))
    return llvm::Error::success();
  return passes::errorOf(diagnostics);
}

static llvm::Expected<std::string> entryToPlace(ModuleOp module, const std::string &asked) {
  std::vector<llvm::StringRef> names;
  for (auto entry : module.getOps<ir::EntryOp>())
    names.push_back(entry.getSymName());
  if (names.empty())
    return makeError(ExitCode::Invalid, "the model has no entry point to place");
  llvm::StringRef wanted = !asked.empty()                            ? llvm::StringRef(asked)
                           : llvm::is_contained(names, "train_step") ? "train_step"
                                                                     : names.front();
  if (llvm::is_contained(names, wanted))
    return wanted.str();
  return makeError(ExitCode::Usage, "there is no entry point '" + wanted + "'" + passes::didYouMean(wanted, names) +
                                        "; there are " + llvm::join(names, ", "));
}

llvm::Expected<passes::PlacementSetting> preparePlacement(ModuleOp module, const CompileOptions &options,
                                                          const passes::PipelineInputs &inputs,
                                                          const passes::PlacementRequest &request) {
  passes::PlacementSetting setting;
  setting.module = module;
  setting.options = options;
  setting.inputs = inputs;
  auto entry = entryToPlace(module, request.entry);
  if (!entry)
    return entry.takeError();
  setting.entry = *entry;
  if (llvm::Error error = checkDevices(module))
    return error;
  ir::DiagnosticText diagnostics(module.getContext());
  setting.backends = passes::DeviceBackends::create(module, inputs.backends, options);
  if (!setting.backends)
    return passes::errorOf(diagnostics);
  auto costs = costsOf(setting.target(), request, options);
  if (!costs)
    return costs.takeError();
  setting.costs = std::move(*costs);
  setting.inputs.costs = setting.costs.model;
  for (auto op : module.getOps<ir::EntryOp>())
    setting.graphs.emplace(op.getSymName().str(),
                           passes::buildPlacementGraph(op, *setting.backends, setting.costs.model, options.fuse));
  passes::PlacementGraph &graph = setting.graphs.at(setting.entry);
  if (!request.file.empty())
    if (llvm::Error error = keepPlacement(request.file, graph, setting.target()))
      return error;
  return setting;
}

static PlacementDecision decided(const passes::PlacementSetting &setting, const passes::Candidate &chosen,
                                 PlacementReport report) {
  passes::applyCandidate(setting, chosen);
  return {std::move(report), setting.costs.model};
}

/// All work that it can run on one device.
static llvm::Expected<PlacementDecision> prefer(passes::PlacementSetting &setting, const std::string &name) {
  const ir::TargetDevice *device = setting.target().find(name);
  passes::Candidate preferred = passes::tryStrategy(setting, "all it can", [&](passes::PlacementGraph &graph) {
    return passes::preferring(graph, uint32_t(device - setting.target().devices().data()));
  });
  if (!preferred.isPossible())
    return passes::refuse(preferred.obstacle.kind, preferred.obstacle.text);
  return decided(setting, preferred, describePlacement(setting, preferred, preferred, {}));
}

static std::string remarkOn(const passes::SearchResult &found, double uncertainty) {
  const passes::Candidate &chosen = found.candidates[*found.chosen], &best = found.candidates[*found.fastest];
  double gain = 1 - best.evaluation->seconds / chosen.evaluation->seconds;
  return gain > 0
             ? fmt::format("'{}' is predicted {:.2f} % faster than '{}', but predictions are certain to {:g} % "
                           "only: the simpler placement is chosen",
                           shownAlternative(best.name), 100 * gain, shownAlternative(chosen.name), 100 * uncertainty)
             : "";
}

static llvm::Error whyNone(const passes::SearchResult &found) {
  if (found.obstacle.kind != passes::Obstacle::None)
    return passes::refuse(found.obstacle.kind, "no placement is possible: " + found.obstacle.text);
  std::string text;
  for (const passes::Candidate &candidate : found.candidates)
    text += (text.empty() ? "" : "; ") + shownAlternative(candidate.name) + ": " + candidate.obstacle.text;
  return makeError(ExitCode::Exhausted, "no placement fits: " + text);
}

llvm::Expected<PlacementDecision> choosePlacement(ModuleOp module, const CompileOptions &options,
                                                  const passes::PipelineInputs &inputs,
                                                  const passes::PlacementRequest &request) {
  auto setting = preparePlacement(module, options, inputs, request);
  if (!setting)
    return setting.takeError();
  if (!request.prefer.empty())
    return prefer(*setting, request.prefer);
  passes::SearchResult found = passes::searchPlacement(*setting);
  if (!found.chosen)
    return whyNone(found);
  const passes::Candidate &chosen = found.candidates[*found.chosen];
  PlacementReport report = describePlacement(*setting, chosen, found.candidates, found.summary);
  report.remark = remarkOn(found, setting->costs.uncertainty);
  return decided(*setting, chosen, std::move(report));
}

} // namespace sluice::compiler
