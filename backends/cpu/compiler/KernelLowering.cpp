#include "backends/cpu/compiler/KernelLowering.h"

#include "backends/cpu/compiler/ContractionKernel.h"
#include "backends/cpu/compiler/loops/LoopKernel.h"
#include "ir/Layout.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"

namespace sluice::cpu {

using namespace mlir;

static LogicalResult checkLayouts(ir::KernelOp kernel) {
  auto check = [&](Type type) -> LogicalResult {
    auto tensor = cast<RankedTensorType>(type);
    auto dims = ir::getPhysicalDims(tensor);
    if (failed(dims))
      return kernel.emitOpError("has a layout that is not made of dimensions and their floordiv and mod: ") << type;
    for (const ir::PhysicalDim &dim : *dims)
      if (dim.kind != ir::PhysicalDim::Whole && tensor.isDynamicDim(dim.logical))
        return kernel.emitOpError("has a layout that cuts the batch dimension into tiles: ") << type;
    return success();
  };
  for (Type type : kernel->getOperandTypes())
    if (failed(check(type)))
      return failure();
  for (Operation &op : kernel.getBody().front())
    for (Type type : op.getResultTypes())
      if (failed(check(type)))
        return failure();
  return success();
}

static std::string uniqueName(ModuleOp module, StringRef wanted) {
  std::string name = wanted.str();
  // Stages are called name, name_0, name_partial_1, ...: a prefix is taken if any symbol begins with it.
  auto taken = [&](StringRef prefix) {
    return llvm::any_of(module.getOps<func::FuncOp>(),
                        [&](func::FuncOp function) { return function.getName().starts_with(prefix); });
  };
  for (unsigned number = 2; taken(name); ++number)
    name = (wanted + "_" + Twine(number)).str();
  return name;
}

// Elements of a type: those that are always there, and those that each row has.
static std::pair<int64_t, int64_t> countElements(RankedTensorType type) {
  int64_t count = 1;
  for (int64_t size : type.getShape())
    if (!ShapedType::isDynamic(size))
      count *= size;
  return type.hasStaticShape() ? std::pair(count, int64_t(0)) : std::pair(int64_t(0), count);
}

static void addCosts(ir::KernelOp kernel, LoweredKernel &lowered, int64_t capacity) {
  auto addBytes = [&](RankedTensorType type) {
    int64_t bytes = ir::getBufferBytes(type, capacity);
    (type.hasStaticShape() ? lowered.bytes : lowered.bytesPerRow) +=
        type.hasStaticShape() ? bytes : bytes / std::max<int64_t>(capacity, 1);
  };
  for (Type type : kernel->getOperandTypes())
    addBytes(cast<RankedTensorType>(type));
  for (Type type : kernel->getResultTypes())
    addBytes(cast<RankedTensorType>(type));
  for (Operation &op : kernel.getBody().front()) {
    std::pair<int64_t, int64_t> flops{0, 0};
    if (auto contraction = dyn_cast<ir::ContractionOp>(op)) {
      flops = contraction.getFlops();
    } else if (isa<ir::ElementwiseOp>(op)) {
      flops = countElements(cast<RankedTensorType>(op.getResult(0).getType()));
    } else if (auto element = dyn_cast<ir::ElementOp>(op);
               element && element.getFusionKind() == ir::FusionKind::Reduction && op.getNumOperands() > 0) {
      flops = countElements(cast<RankedTensorType>(op.getOperand(0).getType()));
    }
    lowered.flops += flops.first;
    lowered.flopsPerRow += flops.second;
  }
}

FailureOr<LoweredKernel> lowerKernel(ir::KernelOp kernel, ModuleOp into, const Target &target, int64_t capacity) {
  into.getContext()->loadDialect<math::MathDialect, LLVM::LLVMDialect>();
  if (failed(checkLayouts(kernel)))
    return failure();
  std::string name = uniqueName(into, kernel.getName());
  auto contractions = kernel.getBody().front().getOps<ir::ContractionOp>();
  FailureOr<LoweredKernel> lowered = contractions.empty()
                                         ? lowerLoopKernel(kernel, into, name, target, capacity)
                                         : lowerContractionKernel(kernel, into, name, target, capacity);
  if (succeeded(lowered))
    addCosts(kernel, *lowered, capacity);
  return lowered;
}

} // namespace sluice::cpu
