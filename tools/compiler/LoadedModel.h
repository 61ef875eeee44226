// A compiled model loaded into this process.
#pragma once

#include "runtime/instance/Instance.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/Error.h"
#include <memory>
#include <string>

namespace sluice::compiler {

/// An artifact's objects, linked in memory, and an instance of it in this process's pool, with the installation's
/// backends.
class LoadedModel {
public:
  static llvm::Expected<std::unique_ptr<LoadedModel>> load(llvm::ArrayRef<std::string> objects,
                                                           runtime::InstanceOptions options);
  ~LoadedModel();
  LoadedModel(const LoadedModel &) = delete;
  LoadedModel &operator=(const LoadedModel &) = delete;

  runtime::Instance &instance() { return *model; }

private:
  struct Code;
  explicit LoadedModel(std::unique_ptr<Code> code);
  std::unique_ptr<Code> code; // outlives the instance, whose kernels it contains
  std::unique_ptr<runtime::Instance> model;
};

/// Runs code that may throw a runtime error, and returns the error as one of the tools.
llvm::Error guardRuntime(llvm::function_ref<llvm::Error()> body);

} // namespace sluice::compiler
