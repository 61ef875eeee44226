// The objects of an artifact, linked in memory.
#pragma once

#include "sluice/runtime/artifact.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/Error.h"
#include <memory>
#include <string>

namespace sluice::compiler {

class LoadedCode {
public:
  /// Links the objects of an artifact into this process. Fails if memory is exhausted.
  static llvm::Expected<std::unique_ptr<LoadedCode>> load(llvm::ArrayRef<std::string> objects);
  ~LoadedCode();
  LoadedCode(const LoadedCode &) = delete;

  /// The first variant of the artifact, valid as long as this object.
  const sluice_artifact &artifact() const { return *first; }

private:
  struct Object;
  explicit LoadedCode(std::unique_ptr<Object> object);
  std::unique_ptr<Object> object;
  const sluice_artifact *first = nullptr;
};

/// Runs `body`, and converts runtime::Error to llvm::Error with the same exit code.
llvm::Error guardRuntime(llvm::function_ref<llvm::Error()> body);

} // namespace sluice::compiler
