// Emits the object that turns kernels into an artifact: `sluice_artifact_query`, the plan and the table of stages.
#pragma once

#include "passes/artifact/BuildPlan.h"
#include "llvm/Support/Error.h"
#include <string>

namespace sluice::passes {

/// The position of an artifact among those of one model, each for a list of devices.
struct Variant {
  int64_t number = 0;
  bool isLast = true;
};

/// The function that returns a variant; `sluice_artifact_query` returns the first.
std::string querySymbol(int64_t variant);

/// A host object file with the artifact's query function, the plan's text, the device code and the constants. It refers
/// by symbol to the plan's stages and to the next variant.
llvm::Expected<std::string> emitArtifact(const BuiltPlan &built, llvm::ArrayRef<DeviceCode> code,
                                         llvm::StringRef constants, const Variant &variant);

} // namespace sluice::passes
