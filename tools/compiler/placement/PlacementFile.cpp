#include "tools/compiler/placement/PlacementFile.h"

#include "tools/compiler/Diagnostics.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace mlir;
using sluice::passes::PlacedGroup;
using sluice::passes::PlacementGraph;
namespace json = llvm::json;

namespace sluice::compiler {

static constexpr int64_t kFormat = 1;

static std::string keyOf(llvm::StringRef name, bool isState) { return (isState ? "state " : "") + name.str(); }

/// The groups that a file may speak of.
static std::map<std::string, uint32_t> groupsByKey(const PlacementGraph &graph) {
  std::map<std::string, uint32_t> groups;
  for (auto [i, group] : llvm::enumerate(graph.groups))
    if (group.kind == PlacedGroup::State || group.kind == PlacedGroup::Launch)
      groups[keyOf(group.name, group.kind == PlacedGroup::State)] = uint32_t(i);
  return groups;
}

static std::optional<uint32_t> findDevice(const ir::Target &target, llvm::StringRef name) {
  for (auto [i, device] : llvm::enumerate(target.devices()))
    if (device.name == name || device.spelling() == name)
      return uint32_t(i);
  return std::nullopt;
}

llvm::Expected<PlacementFile> readPlacementFile(const std::string &path, const PlacementSetting &setting) {
  auto invalid = [&](const llvm::Twine &what) { return makeError(ExitCode::Invalid, path + ": " + what); };
  auto buffer = llvm::MemoryBuffer::getFile(path);
  if (!buffer)
    return invalid(buffer.getError().message());
  auto parsed = json::parse((*buffer)->getBuffer());
  if (!parsed)
    return invalid(llvm::toString(parsed.takeError()));
  const json::Object *root = parsed->getAsObject();
  const json::Object *placement = root ? root->getObject("placement") : nullptr;
  if (!placement || root->getInteger("format") != kFormat)
    return invalid("is no placement, as `sluice place --save` writes it");
  if (auto entry = root->getString("entry"); entry && *entry != setting.entry)
    return invalid("is for the entry point '" + *entry + "', and " + setting.entry + " is to be placed");

  PlacementGraph graph = setting.graphOf(setting.module, setting.entry);
  std::map<std::string, uint32_t> groups = groupsByKey(graph);
  std::vector<llvm::StringRef> keys, deviceNames;
  for (const auto &[key, group] : groups)
    keys.push_back(key);
  for (const ir::TargetDevice &device : setting.target().devices())
    deviceNames.push_back(device.name);
  PlacementFile file;
  file.path = path;
  for (const auto &[key, value] : *placement) {
    llvm::StringRef group = key;
    auto name = value.getAsString();
    if (!groups.contains(group.str()))
      return invalid("'" + group + "' is no group of " + setting.entry + didYouMean(group, keys));
    if (!name)
      return invalid("'" + group + "' must be given a device's name");
    std::optional<uint32_t> device = findDevice(setting.target(), *name);
    if (!device)
      return makeError(ExitCode::Unsupported, path + ": '" + group + "' is to go to '" + *name +
                                                  "', which is no device of the target " + setting.target().str() +
                                                  didYouMean(*name, deviceNames));
    file.devices[group.str()] = *device;
  }
  if (llvm::Error error = file.fix(graph, setting.target()))
    return std::move(error);
  return file;
}

llvm::Error PlacementFile::fix(PlacementGraph &graph, const ir::Target &target) const {
  std::map<std::string, uint32_t> groups = groupsByKey(graph);
  for (const auto &[key, device] : devices) {
    uint32_t index = groups.at(key);
    const std::string &name = target.devices()[device].name;
    passes::PlacementProblem::Group &group = graph.problem.groups[index];
    if (group.pinned && *group.pinned != device)
      return makeError(ExitCode::Invalid, path + ": '" + key + "' cannot go to " + name + ": the model has it on " +
                                              target.devices()[*group.pinned].name);
    if (group.times[device] == passes::PlacementProblem::kImpossible)
      return makeError(ExitCode::Unsupported, path + ": '" + key + "' cannot go to " + name + ": " + graph.groups[index].unsupported);
    group.pinned = device;
  }
  return llvm::Error::success();
}

std::string printPlacementFile(const PlacementReport &report) {
  json::Object placement;
  for (const PlacementReport::Group &group : report.groups)
    placement[keyOf(group.name, group.isState)] = group.device;
  std::string text;
  llvm::raw_string_ostream(text) << llvm::formatv("{0:2}\n", json::Value(json::Object{{"format", kFormat},
                                                                                     {"model", report.model},
                                                                                     {"entry", report.entry},
                                                                                     {"placement", std::move(placement)}}));
  return text;
}

} // namespace sluice::compiler
