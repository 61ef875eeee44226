// A compiled model loaded into this process.
#pragma once

#include "runtime/instance/Instance.h"
#include "tools/compiler/LoadedCode.h"
#include <memory>
#include <string>

namespace sluice::compiler {

/// An artifact's objects, linked in memory, and an instance of it in this process's pool, with the installation's
/// backends.
class LoadedModel {
public:
  static llvm::Expected<std::unique_ptr<LoadedModel>> load(llvm::ArrayRef<std::string> objects,
                                                           runtime::InstanceOptions options);
  LoadedModel(const LoadedModel &) = delete;
  LoadedModel &operator=(const LoadedModel &) = delete;

  runtime::Instance &instance() { return *model; }

private:
  explicit LoadedModel(std::unique_ptr<LoadedCode> code) : code(std::move(code)) {}
  std::unique_ptr<LoadedCode> code; // outlives the instance, whose kernels it contains
  std::unique_ptr<runtime::Instance> model;
};

} // namespace sluice::compiler
