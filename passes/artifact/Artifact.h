// The object that makes kernels an artifact: `sluice_artifact_query`, the plan and the table of stages.
#pragma once

#include "passes/artifact/BuildPlan.h"
#include "llvm/Support/Error.h"

namespace sluice::passes {

/// An object file for the host with the artifact's query function, the plan's text, the device code and the constants; it
/// refers to the plan's stages by symbol.
llvm::Expected<std::string> emitArtifact(const BuiltPlan &built, llvm::ArrayRef<DeviceCode> code,
                                         llvm::StringRef constants);

} // namespace sluice::passes
