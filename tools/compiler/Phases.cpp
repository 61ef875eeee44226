#include "tools/compiler/Phases.h"

#include "tools/compiler/Diagnostics.h"

using namespace mlir;

namespace sluice::compiler {

llvm::Error errorOf(const ir::DiagnosticText &diagnostics) {
  if (diagnostics.errors().empty())
    return makeError(ExitCode::Internal, "the compiler failed without saying why");
  return makeError(diagnostics.hasUnsupported() ? ExitCode::Unsupported : ExitCode::Invalid,
                   llvm::StringRef(diagnostics.errors()).rtrim());
}

llvm::Expected<passes::Lowered> runPhases(ModuleOp module, const passes::PipelineOptions &pipeline,
                                          std::string &warnings) {
  ir::DiagnosticText diagnostics(module.getContext());
  FailureOr<passes::Lowered> lowered = passes::runPipeline(module, pipeline);
  warnings += diagnostics.warnings();
  if (failed(lowered))
    return errorOf(diagnostics);
  return std::move(*lowered);
}

} // namespace sluice::compiler
