// Models in phase `train`, in process.
#pragma once

#include "ir/Dialect.h"
#include "ir/Target.h"
#include "ir/text/DiagnosticText.h"
#include "ir/text/ParseGuard.h"
#include "passes/driver/Pipeline.h"
#include "tools/compiler/Backends.h"
#include <stdexcept>

namespace sluice::test {

/// The value; throws the error.
template <typename T> T valueOf(llvm::Expected<T> value) {
  if (!value)
    throw std::runtime_error(llvm::toString(value.takeError()));
  return std::move(*value);
}

/// A model up to phase `train`, for its target.
class Trained {
public:
  explicit Trained(const std::string &model) {
    context.loadDialect<ir::SluiceDialect>();
    module = valueOf(ir::parseModuleText(model, "model.mlir", context));
    ir::DiagnosticText diagnostics(&context);
    mlir::FailureOr<ir::Target> target = ir::Target::of(*module);
    if (succeeded(target))
      for (const ir::TargetDevice &device : target->devices())
        inputs.backends.push_back(valueOf(compiler::findBackend(device.backend)));
    inputs.compileTo = "train";
    if (failed(passes::runPipeline(*module, {}, inputs)))
      throw std::runtime_error(diagnostics.errors());
    inputs.compileFrom = "train";
    inputs.compileTo = "lowered";
  }

  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  passes::PipelineInputs inputs;
};

} // namespace sluice::test
