#include "tools/compiler/Phases.h"

#include "tools/compiler/Diagnostics.h"

using namespace mlir;

namespace sluice::compiler {

llvm::Expected<passes::Lowered> runPhases(ModuleOp module, const CompileOptions &options,
                                          const passes::PipelineInputs &inputs, std::string &warnings,
                                          const passes::PipelineServices &services) {
  ir::DiagnosticText diagnostics(module.getContext());
  FailureOr<passes::Lowered> lowered = passes::runPipeline(module, options, inputs, services);
  warnings += diagnostics.warnings();
  if (failed(lowered))
    return passes::errorOf(diagnostics);
  return std::move(*lowered);
}

} // namespace sluice::compiler
