#include "tools/gpu_check/pack/ModelKernels.h"

#include "ir/Module.h"
#include "ir/Target.h"
#include "ir/Types.h"
#include "ir/text/DiagnosticText.h"
#include "ir/text/ParseGuard.h"
#include "mlir/IR/OperationSupport.h"
#include "passes/backend/DeviceBackends.h"
#include "tools/compiler/Backends.h"
#include "tools/compiler/Compiler.h"
#include "tools/compiler/Diagnostics.h"
#include "tools/gpu_check/pack/WritePack.h"

using namespace mlir;

namespace sluice::gpu_check {

static constexpr const char *kDevice = "cuda:0";

/// The allowed error of TF32 products on tensor cores, relative to the magnitudes of their results: tensor cores round
/// each operand by up to 2^-11 relative.
static constexpr double kTf32Tolerance = 0x1p-9;

/// The kernels of one device, without duplicates.
static std::vector<ir::KernelOp> distinctKernels(ModuleOp module, StringRef device) {
  std::vector<ir::KernelOp> kernels;
  module.walk([&](ir::KernelOp kernel) {
    if (ir::getDevice(kernel->getResult(0).getType()) != device)
      return;
    bool isKnown = llvm::any_of(kernels, [&](ir::KernelOp known) {
      return OperationEquivalence::isRegionEquivalentTo(&known.getBody(), &kernel.getBody(),
                                                        OperationEquivalence::IgnoreLocations);
    });
    if (!isKnown)
      kernels.push_back(kernel);
  });
  return kernels;
}

/// Begins the session that prepares the kernels of a module in phase `fused`.
static llvm::Expected<std::unique_ptr<passes::DeviceBackends>> beginSessions(ModuleOp module,
                                                                             const CompileOptions &options) {
  auto backend = compiler::findBackend("cuda");
  if (!backend)
    return backend.takeError();
  ir::DiagnosticText diagnostics(module.getContext());
  auto backends = passes::DeviceBackends::create(module, {&compiler::hostBackend(), *backend}, options);
  if (!backends)
    return compiler::makeError(compiler::ExitCode::Unsupported, diagnostics.errors());
  return backends;
}

llvm::Expected<size_t> packModel(const std::string &graph, const std::string &name, const std::string &folder,
                                 CompileOptions options) {
  MLIRContext context(MLIRContext::Threading::DISABLED);
  auto module = ir::parseModuleFile(graph, context);
  if (!module)
    return compiler::withCode(compiler::ExitCode::Invalid, module.takeError());
  options.devices = kDevice;
  compiler::CompileTask task;
  task.compileTo = "fused";
  auto compiled = compiler::compileModule(**module, options, task);
  if (!compiled)
    return compiled.takeError();
  auto backends = beginSessions(**module, options);
  if (!backends)
    return backends.takeError();
  double productTolerance = options.math == "strict" ? 0 : kTf32Tolerance;
  std::vector<KernelToPack> kernels;
  for (ir::KernelOp kernel : distinctKernels(**module, ir::acceleratorName(0)))
    kernels.push_back({kernel, kernel.getName().str()});
  Pack pack{name, int64_t(ir::getModel(**module).getCapacity()), 0, {}};
  if (llvm::Error error =
          packKernels(std::move(pack), kernels, (*backends)->of(kernels.front().op), folder, productTolerance))
    return std::move(error);
  return kernels.size();
}

} // namespace sluice::gpu_check
