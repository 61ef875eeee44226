// A compiled model loaded into this process.
#pragma once

#include "runtime/instance/Instance.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/Error.h"
#include <memory>
#include <string>

namespace sluice::compiler {

/// Links the objects into a library, loads it, and makes an instance of it, which finds the installation's backends.
/// The library's file is gone when this returns.
class LoadedModel {
public:
  static llvm::Expected<std::unique_ptr<LoadedModel>> load(llvm::ArrayRef<std::string> objects,
                                                           runtime::InstanceOptions options);
  ~LoadedModel();
  LoadedModel(const LoadedModel &) = delete;
  LoadedModel &operator=(const LoadedModel &) = delete;

  runtime::Instance &instance() { return *model; }

private:
  LoadedModel() = default;
  void *library = nullptr;
  std::unique_ptr<runtime::Instance> model;
};

/// Runs what may throw an error of the runtime, and returns it as one of ours.
llvm::Error guardRuntime(llvm::function_ref<llvm::Error()> body);

} // namespace sluice::compiler
