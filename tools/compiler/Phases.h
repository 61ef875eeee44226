// Running the compiler's phases, with what they say as errors of the tools.
#pragma once

#include "ir/text/DiagnosticText.h"
#include "passes/Pipeline.h"
#include "llvm/Support/Error.h"
#include <string>

namespace sluice::compiler {

/// The errors that were caught: of something unsupported if one says so, else of an invalid model.
llvm::Error errorOf(const ir::DiagnosticText &diagnostics);

/// Runs the pipeline on the module in place and adds its warnings to `warnings`.
llvm::Expected<passes::Lowered> runPhases(mlir::ModuleOp module, const passes::PipelineOptions &pipeline,
                                          std::string &warnings);

} // namespace sluice::compiler
