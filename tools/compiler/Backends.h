// The backends that this compiler was built with.
#pragma once

#include "sluice/backend/compile.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"

namespace sluice::compiler {

llvm::ArrayRef<const sluice_backend_compile *> builtInBackends();

/// The backend with this name; the error names those there are.
llvm::Expected<const sluice_backend_compile *> findBackend(llvm::StringRef name);

/// What a backend says of a target; the error is its reason to refuse.
struct TargetDescription {
  std::string deviceType, cpu;
  unsigned vectorBits;
};
llvm::Expected<TargetDescription> describeTarget(const sluice_backend_compile &backend, const std::string &cpu);

} // namespace sluice::compiler
