#include "tools/compiler/LoadedModel.h"

#include "runtime/base/Status.h"
#include "tools/compiler/Diagnostics.h"
#include "tools/compiler/Installation.h"
#include "tools/compiler/Linker.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include <dlfcn.h>
#include <optional>

namespace fs = llvm::sys::fs;

namespace sluice::compiler {

llvm::Error guardRuntime(llvm::function_ref<llvm::Error()> body) {
  std::optional<llvm::Error> returned;
  runtime::Status status = runtime::guarded([&] { returned.emplace(body()); });
  if (status.ok())
    return std::move(*returned);
  return makeError(static_cast<ExitCode>(static_cast<int>(status.code)), status.message);
}

static llvm::Expected<void *> loadLibrary(llvm::ArrayRef<std::string> objects) {
  llvm::SmallString<128> folder;
  if (std::error_code error = fs::createUniqueDirectory("sluice", folder))
    return makeError(ExitCode::Invalid, "a temporary folder: " + error.message());
  auto cleanUp = llvm::make_scope_exit([&] { fs::remove_directories(folder); });
  std::string path = (folder + "/model.so").str();
  if (llvm::Error error = linkArtifact(objects, path, LinkOutput::SharedLibrary))
    return error;
  if (void *library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL))
    return library;
  return makeError(ExitCode::Internal, dlerror());
}

llvm::Expected<std::unique_ptr<LoadedModel>> LoadedModel::load(llvm::ArrayRef<std::string> objects,
                                                               runtime::InstanceOptions options) {
  auto library = loadLibrary(objects);
  if (!library)
    return library.takeError();
  std::unique_ptr<LoadedModel> loaded(new LoadedModel);
  loaded->library = *library;
  auto query = reinterpret_cast<decltype(&sluice_artifact_query)>(dlsym(*library, "sluice_artifact_query"));
  if (!query)
    return makeError(ExitCode::Internal, "the artifact has no query symbol");
  llvm::Error error = guardRuntime([&] {
    options.devices.folder = findBackendFolder();
    loaded->model = std::make_unique<runtime::Instance>(*query(), options);
    return llvm::Error::success();
  });
  if (error)
    return error;
  return loaded;
}

LoadedModel::~LoadedModel() {
  model.reset(); // its kernels are in the library
  if (library)
    dlclose(library);
}

} // namespace sluice::compiler
