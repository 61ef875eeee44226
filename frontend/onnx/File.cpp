#include "frontend/onnx/File.h"

#include "frontend/onnx/file/Wire.h"
#include "runtime/base/Status.h"
#include "runtime/base/Text.h"

#include <set>

namespace sluice::onnx {

std::string File::baseOf(const std::string &path) { return path.substr(path.find_last_of('/') + 1); }

static std::vector<file::ValueInfo> inputsOf(const file::Graph &graph) {
  std::set<std::string_view> initialized;
  for (const file::Named &initializer : graph.initializers)
    initialized.insert(initializer.name);
  std::vector<file::ValueInfo> inputs;
  for (const file::ValueInfo &input : graph.inputs)
    if (!initialized.contains(input.name))
      inputs.push_back(input);
  return inputs;
}

File::File(const std::string &path, const std::string &dataFolder, const SourceLocation &location)
    : base(baseOf(path)) {
  runtime::Status opened = runtime::guarded([&] { mapped = std::make_shared<const runtime::MappedFile>(path); });
  if (!opened.ok())
    throw Error(opened.message, location, {}, int(opened.code));
  use(location, [&] {
    std::string_view bytes;
    mapped->use([&](std::span<const std::byte> all) {
      bytes = {reinterpret_cast<const char *>(all.data()), all.size()};
      parsed = file::readModel(bytes);
    });
    data = std::make_unique<file::Tensors>(mapped, bytes, dataFolder);
    given = inputsOf(parsed.graph);
  });
}

static std::vector<std::string> valuesOf(const file::Graph &graph) {
  std::vector<std::string> names;
  for (const file::ValueInfo &input : graph.inputs)
    names.emplace_back(input.name);
  for (const file::Named &initializer : graph.initializers)
    names.emplace_back(initializer.name);
  for (const file::Node &node : graph.nodes)
    names.insert(names.end(), node.outputs.begin(), node.outputs.end());
  return names;
}

/// "'a', 'b' or 'c'"
static std::string choiceOf(const std::vector<std::string> &names) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i)
    text += (i == 0 ? "" : i + 1 == names.size() ? " or " : ", ") + runtime::quote(names[i]);
  return text;
}

void File::requireValues(const std::vector<std::string> &names, const SourceLocation &location) const {
  constexpr std::size_t most = 5;
  std::vector<std::string> values = valuesOf(parsed.graph);
  std::set<std::string_view> known(values.begin(), values.end());
  for (const std::string &name : names) {
    if (known.contains(name))
      continue;
    std::vector<std::string> near = runtime::nearestFew(name, values, most), outputs;
    for (const file::ValueInfo &output : parsed.graph.outputs)
      if (outputs.size() < most)
        outputs.emplace_back(output.name);
    std::string rest = parsed.graph.outputs.size() > most ? " and others" : "";
    throw Error(base + " has no value " + runtime::quote(name) + "; " +
                    (near.empty() ? "its outputs are " + runtime::listed(outputs) + rest
                                  : "did you mean " + choiceOf(near) + "?"),
                location);
  }
}

void File::use(const SourceLocation &location, const std::function<void()> &body) const {
  try {
    mapped->use([&](std::span<const std::byte>) { body(); });
  } catch (const Malformed &error) {
    throw Error(base + ": " + error.what(), location, {}, int(runtime::ExitCode::invalid));
  } catch (const runtime::Error &error) {
    throw Error(error.what(), location, {}, int(error.code()));
  }
}

} // namespace sluice::onnx
