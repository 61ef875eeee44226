#include "tools/compiler/LoadedModel.h"

#include "tools/compiler/Installation.h"

namespace sluice::compiler {

llvm::Expected<std::unique_ptr<LoadedModel>> LoadedModel::load(llvm::ArrayRef<std::string> objects,
                                                               runtime::InstanceOptions options) {
  auto code = LoadedCode::load(objects);
  if (!code)
    return code.takeError();
  std::unique_ptr<LoadedModel> loaded(new LoadedModel(std::move(*code)));
  llvm::Error error = guardRuntime([&] {
    options.devices.folder = findBackendFolder();
    loaded->model =
        std::make_unique<runtime::Instance>(loaded->code->artifact(), runtime::DevicePool::ofProcess(), options);
    return llvm::Error::success();
  });
  if (error)
    return error;
  return loaded;
}

} // namespace sluice::compiler
