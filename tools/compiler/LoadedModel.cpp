#include "tools/compiler/LoadedModel.h"

#include "backends/cpu/compiler/llvm/Codegen.h"
#include "runtime/base/Status.h"
#include "tools/compiler/Diagnostics.h"
#include "tools/compiler/Installation.h"
#include <optional>

namespace sluice::compiler {

llvm::Error guardRuntime(llvm::function_ref<llvm::Error()> body) {
  std::optional<llvm::Error> returned;
  runtime::Status status = runtime::guarded([&] { returned.emplace(body()); });
  if (status.ok())
    return std::move(*returned);
  return makeError(static_cast<ExitCode>(static_cast<int>(status.code)), status.message);
}

struct LoadedModel::Code {
  explicit Code(cpu::LoadedObject object) : object(std::move(object)) {}
  cpu::LoadedObject object;
};

LoadedModel::LoadedModel(std::unique_ptr<Code> code) : code(std::move(code)) {}
LoadedModel::~LoadedModel() = default;

/// The error of linking in memory: exhausted memory, or else one of our own.
static llvm::Error errorOfLinking(llvm::Error error) {
  ExitCode code = ExitCode::Internal;
  error = llvm::handleErrors(std::move(error), [&](std::unique_ptr<llvm::ECError> its) -> llvm::Error {
    if (its->convertToErrorCode() == std::errc::not_enough_memory)
      code = ExitCode::Exhausted;
    return llvm::Error(std::move(its));
  });
  return withCode(code, std::move(error));
}

llvm::Expected<std::unique_ptr<LoadedModel>> LoadedModel::load(llvm::ArrayRef<std::string> objects,
                                                               runtime::InstanceOptions options) {
  llvm::SmallVector<llvm::StringRef> contents(objects.begin(), objects.end());
  auto code = cpu::loadObjects(contents);
  if (!code)
    return errorOfLinking(code.takeError());
  std::unique_ptr<LoadedModel> loaded(new LoadedModel(std::make_unique<Code>(std::move(*code))));
  auto found = loaded->code->object.lookup("sluice_artifact_query");
  if (!found)
    return errorOfLinking(found.takeError());
  auto query = reinterpret_cast<decltype(&sluice_artifact_query)>(*found);
  llvm::Error error = guardRuntime([&] {
    options.devices.folder = findBackendFolder();
    loaded->model = std::make_unique<runtime::Instance>(*query(), runtime::DevicePool::ofProcess(), options);
    return llvm::Error::success();
  });
  if (error)
    return error;
  return loaded;
}

} // namespace sluice::compiler
