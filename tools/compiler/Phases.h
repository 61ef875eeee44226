// Runs the compiler's phases and converts their diagnostics to errors of the tools.
#pragma once

#include "passes/Obstacle.h"
#include "passes/driver/Pipeline.h"
#include "llvm/Support/Error.h"
#include <string>

namespace sluice::compiler {

/// With the exit code of the obstacle's kind.
llvm::Error errorOf(const passes::Obstacle &obstacle);
llvm::Error errorOf(const ir::DiagnosticText &diagnostics);

/// Runs the pipeline on the module in place and adds its warnings to `warnings`.
llvm::Expected<passes::Lowered> runPhases(mlir::ModuleOp module, const passes::PipelineOptions &pipeline,
                                          std::string &warnings, const passes::PipelineServices &services = {});

} // namespace sluice::compiler
