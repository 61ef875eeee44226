// The object that makes kernels an artifact: `sluice_artifact_query`, the plan and the table of stages.
#pragma once

#include "passes/artifact/BuildPlan.h"
#include "llvm/Support/Error.h"
#include <string>

namespace sluice::passes {

/// Which this is of the artifacts of one model, each for a list of devices.
struct Variant {
  int64_t number = 0;
  bool isLast = true;
};

/// The function that gives a variant: `sluice_artifact_query` gives the first.
std::string querySymbol(int64_t variant);

/// An object file for the host with the artifact's query function, the plan's text, the device code and the constants; it
/// refers to the plan's stages, and to the next variant, by symbol.
llvm::Expected<std::string> emitArtifact(const BuiltPlan &built, llvm::ArrayRef<DeviceCode> code,
                                         llvm::StringRef constants, const Variant &variant);

} // namespace sluice::passes
