#include "tools/compiler/placement/report/PlacementFile.h"

#include "ir/Dialect.h"
#include "ir/Module.h"
#include "passes/Nearest.h"
#include "runtime/plan/DeviceName.h"
#include "tools/compiler/Diagnostics.h"
#include "tools/compiler/JsonFile.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/JSON.h"
#include <map>

using namespace mlir;
using sluice::passes::PlacedGroup;
using sluice::passes::PlacementGraph;
using sluice::passes::PlacementProblem;
namespace json = llvm::json;

namespace sluice::compiler {

static constexpr int64_t kFormat = 1;

static std::string keyOf(llvm::StringRef name, bool isState) { return (isState ? "state " : "") + name.str(); }
static std::string keyOf(const PlacedGroup &group) { return keyOf(group.name, group.kind == PlacedGroup::State); }

namespace {

/// Reads a file's content and checks it against its graph.
class Reading {
public:
  Reading(const std::string &path, const PlacementGraph &graph, const ir::Target &target)
      : path(path), graph(graph), target(target), entry(graph.entry) {
    for (auto [i, group] : llvm::enumerate(graph.groups))
      if (group.kind == PlacedGroup::State || group.kind == PlacedGroup::Launch)
        groups[keyOf(group)] = i;
  }

  llvm::Expected<std::map<std::string, uint32_t>> run(const runtime::Json &content) {
    if (llvm::Error error = checkHead(content))
      return std::move(error);
    std::map<std::string, uint32_t> devices;
    for (const auto &[key, value] : content.at("placement").items()) {
      auto device = deviceFor(key, value);
      if (!device)
        return device.takeError();
      devices[key] = *device;
    }
    return devices;
  }

private:
  llvm::Error invalid(const llvm::Twine &what) const { return makeError(ExitCode::Invalid, path + ": " + what); }
  llvm::Error unsupported(const llvm::Twine &what) const {
    return makeError(ExitCode::Unsupported, path + ": " + what);
  }
  llvm::Error isNone() const { return invalid("is no placement, as `sluice place --save` writes it"); }

  llvm::Error checkHead(const runtime::Json &root) {
    auto has = [&](const char *key, bool (runtime::Json::*is)() const) {
      return root.is_object() && root.contains(key) && (root.at(key).*is)();
    };
    using runtime::Json;
    if (!has("placement", &Json::is_object) || !has("model", &Json::is_string) || !has("entry", &Json::is_string) ||
        !has("format", &Json::is_number_integer) || root.at("format") != kFormat)
      return isNone();
    auto model = root.at("model").get<std::string>(), of = root.at("entry").get<std::string>();
    llvm::StringRef name = ir::getModelName(entry->getParentOfType<ModuleOp>());
    if (model != name)
      return invalid("is for the model '" + model + "', and this is '" + name + "'");
    if (of != entry.getSymName())
      return invalid("is for the entry point '" + of + "', and " + entry.getSymName() + " is to be placed");
    return llvm::Error::success();
  }

  llvm::Expected<uint32_t> deviceFor(llvm::StringRef key, const runtime::Json &value) {
    auto group = groups.find(key.str());
    if (group == groups.end())
      return invalid("'" + key + "' is no group of " + entry.getSymName() + suggestGroup(key));
    if (!value.is_string())
      return invalid("'" + key + "' must be given a device's name");
    auto name = value.get<std::string>();
    const ir::TargetDevice *device = llvm::find_if(target.devices(), [&](const ir::TargetDevice &known) {
      return name == known.name || name == runtime::shownDevice(known.name) || name == known.spelling();
    });
    if (device == target.devices().end())
      return unsupported("'" + key + "' is to go to '" + name + "', which is no device of the target " + target.str() +
                         suggestDevice(name));
    auto index = uint32_t(device - target.devices().begin());
    const PlacementProblem::Group &problem = graph.problem.groups[group->second];
    if (problem.pinned && *problem.pinned != index)
      return invalid("'" + key + "' cannot go to " + shown(*device) + ": the model has it on " +
                     shown(target.devices()[*problem.pinned]));
    if (problem.times[index] == PlacementProblem::kImpossible)
      return unsupported("'" + key + "' cannot go to " + shown(*device) + ": " +
                         graph.groups[group->second].unsupported);
    return index;
  }

  static std::string shown(const ir::TargetDevice &device) {
    return runtime::shownDevice(device.name, device.spelling());
  }

  std::string suggestGroup(llvm::StringRef wrong) const {
    if (std::string state = keyOf(wrong, /*isState=*/true); groups.contains(state))
      return "; did you mean '" + state + "'?";
    std::vector<llvm::StringRef> keys;
    for (const auto &[key, group] : groups)
      keys.push_back(key);
    return passes::didYouMean(wrong, keys);
  }

  std::string suggestDevice(llvm::StringRef wrong) const {
    std::vector<std::string> names;
    for (const ir::TargetDevice &device : target.devices())
      names.push_back(runtime::shownDevice(device.name));
    return passes::didYouMean(wrong, std::vector<llvm::StringRef>(names.begin(), names.end()));
  }

  const std::string &path;
  const PlacementGraph &graph;
  const ir::Target &target;
  ir::EntryOp entry;
  std::map<std::string, size_t> groups; // groups that a file may name, by key
};

} // namespace

llvm::Error keepPlacement(const std::string &path, PlacementGraph &graph, const ir::Target &target) {
  auto content = readJsonFile(path);
  if (!content)
    return content.takeError();
  auto devices = Reading(path, graph, target).run(*content);
  if (!devices)
    return devices.takeError();
  for (auto [group, problem] : llvm::zip_equal(graph.groups, graph.problem.groups))
    if (auto kept = devices->find(keyOf(group)); kept != devices->end()) {
      group.isKept = true;
      problem.pinned = kept->second;
    }
  return llvm::Error::success();
}

/// Launches in the order of their predicted starts, then states; those without a start come last of their kind.
static std::vector<const PlacementReport::Group *> inOrderOfExecution(const PlacementReport &report) {
  std::vector<const PlacementReport::Group *> groups;
  for (const PlacementReport::Group &group : report.groups)
    groups.push_back(&group);
  auto key = [](const PlacementReport::Group *group) {
    return std::tuple(group->isState, group->start < 0, group->start, group); // of equal ones, the first in the report
  };
  llvm::sort(groups, [&](const auto *a, const auto *b) { return key(a) < key(b); });
  return groups;
}

std::string printPlacementFile(const PlacementReport &report) {
  std::string text;
  llvm::raw_string_ostream out(text);
  json::OStream file(out, /*IndentSize=*/2);
  file.object([&] {
    file.attribute("format", kFormat);
    file.attribute("model", report.model);
    file.attribute("entry", report.entry);
    file.attributeObject("placement", [&] { // an Object would sort by name
      for (const PlacementReport::Group *group : inOrderOfExecution(report))
        file.attribute(keyOf(group->name, group->isState), runtime::shownDevice(group->device));
    });
  });
  out << '\n';
  return text;
}

} // namespace sluice::compiler
