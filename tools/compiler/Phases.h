// Runs the compiler's phases and converts their diagnostics to errors of the tools.
#pragma once

#include "ir/text/DiagnosticText.h"
#include "passes/Pipeline.h"
#include "llvm/Support/Error.h"
#include <string>

namespace sluice::compiler {

/// The collected errors as one: of kind Unsupported if one of them is, else Invalid.
llvm::Error errorOf(const ir::DiagnosticText &diagnostics);

/// Runs the pipeline on the module in place and adds its warnings to `warnings`.
llvm::Expected<passes::Lowered> runPhases(mlir::ModuleOp module, const passes::PipelineOptions &pipeline,
                                          std::string &warnings);

} // namespace sluice::compiler
