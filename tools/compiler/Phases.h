// Runs the compiler's phases and converts their diagnostics to errors of the tools.
#pragma once

#include "passes/Obstacle.h"
#include "passes/driver/Pipeline.h"
#include "llvm/Support/Error.h"
#include <string>

namespace sluice::compiler {

/// Runs the pipeline on the module in place and adds its warnings to `warnings`.
llvm::Expected<passes::Lowered> runPhases(mlir::ModuleOp module, const CompileOptions &options,
                                          const passes::PipelineInputs &inputs, std::string &warnings,
                                          const passes::PipelineServices &services = {});

} // namespace sluice::compiler
