#include "tools/compiler/Phases.h"

#include "tools/compiler/Diagnostics.h"

using namespace mlir;

namespace sluice::compiler {

static ExitCode codeOf(passes::Obstacle::Kind kind) {
  switch (kind) {
  case passes::Obstacle::None:
    return ExitCode::Fine;
  case passes::Obstacle::Invalid:
    return ExitCode::Invalid;
  case passes::Obstacle::Unsupported:
    return ExitCode::Unsupported;
  case passes::Obstacle::Exhausted:
    return ExitCode::Exhausted;
  case passes::Obstacle::Internal:
    return ExitCode::Internal;
  }
  llvm_unreachable("no other kinds");
}

llvm::Error errorOf(const passes::Obstacle &obstacle) { return makeError(codeOf(obstacle.kind), obstacle.text); }

llvm::Error errorOf(const ir::DiagnosticText &diagnostics) { return errorOf(passes::obstacleOf(diagnostics)); }

llvm::Expected<passes::Lowered> runPhases(ModuleOp module, const passes::PipelineOptions &pipeline,
                                          std::string &warnings, const passes::PipelineServices &services) {
  ir::DiagnosticText diagnostics(module.getContext());
  FailureOr<passes::Lowered> lowered = passes::runPipeline(module, pipeline, services);
  warnings += diagnostics.warnings();
  if (failed(lowered))
    return errorOf(diagnostics);
  return std::move(*lowered);
}

} // namespace sluice::compiler
