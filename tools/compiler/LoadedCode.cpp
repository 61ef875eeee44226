#include "tools/compiler/LoadedCode.h"

#include "backends/cpu/compiler/llvm/Codegen.h"
#include "runtime/base/Status.h"
#include "tools/compiler/Diagnostics.h"
#include <optional>

namespace sluice::compiler {

llvm::Error guardRuntime(llvm::function_ref<llvm::Error()> body) {
  std::optional<llvm::Error> returned;
  runtime::Status status = runtime::guarded([&] { returned.emplace(body()); });
  if (status.ok())
    return std::move(*returned);
  return makeError(static_cast<ExitCode>(static_cast<int>(status.code)), status.message);
}

struct LoadedCode::Object {
  explicit Object(cpu::LoadedObject object) : object(std::move(object)) {}
  cpu::LoadedObject object;
};

LoadedCode::LoadedCode(std::unique_ptr<Object> object) : object(std::move(object)) {}
LoadedCode::~LoadedCode() = default;

/// Classifies a link error: Exhausted if memory is exhausted, Internal otherwise.
static llvm::Error errorOfLinking(llvm::Error error) {
  ExitCode code = ExitCode::Internal;
  error = llvm::handleErrors(std::move(error), [&](std::unique_ptr<llvm::ECError> its) -> llvm::Error {
    if (its->convertToErrorCode() == std::errc::not_enough_memory)
      code = ExitCode::Exhausted;
    return llvm::Error(std::move(its));
  });
  return withCode(code, std::move(error));
}

llvm::Expected<std::unique_ptr<LoadedCode>> LoadedCode::load(llvm::ArrayRef<std::string> objects) {
  llvm::SmallVector<llvm::StringRef> contents(objects.begin(), objects.end());
  auto linked = cpu::loadObjects(contents);
  if (!linked)
    return errorOfLinking(linked.takeError());
  std::unique_ptr<LoadedCode> loaded(new LoadedCode(std::make_unique<Object>(std::move(*linked))));
  auto found = loaded->object->object.lookup("sluice_artifact_query");
  if (!found)
    return errorOfLinking(found.takeError());
  loaded->first = reinterpret_cast<decltype(&sluice_artifact_query)>(*found)();
  return loaded;
}

} // namespace sluice::compiler
