#include "frontend/onnx/File.h"

#include "frontend/onnx/file/Wire.h"
#include "runtime/base/Status.h"

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
