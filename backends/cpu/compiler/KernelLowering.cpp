#include "backends/cpu/compiler/KernelLowering.h"

#include "backends/cpu/compiler/attention/AttentionKernel.h"
#include "backends/cpu/compiler/loops/LoopKernel.h"
#include "backends/cpu/compiler/product/ContractionKernel.h"
#include "backends/cpu/compiler/product/EinsumLetters.h"
#include "backends/loops/LoopKernel.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"

namespace sluice::cpu {

using namespace mlir;

std::string uniqueName(ModuleOp module, StringRef wanted) {
  std::string name = wanted.str();
  // Stages are called name, name_0, name_partial_1, ...: a prefix is in use if any symbol begins with it.
  auto taken = [&](StringRef prefix) {
    return llvm::any_of(module.getOps<func::FuncOp>(),
                        [&](func::FuncOp function) { return function.getName().starts_with(prefix); });
  };
  for (unsigned number = 2; taken(name); ++number)
    name = (wanted + "_" + Twine(number)).str();
  return name;
}

/// Whether a product generator handles the kernel's product. Grouped products and some einsums are loop nests.
static bool isProduct(ir::ContractionOp op) {
  auto einsum = dyn_cast<ir::EinsumOp>(op.getOperation());
  return op.getGroups() == 1 && !(einsum && isLoopNest(einsum));
}

// Minimum channels on both sides for a separate product per group.
static constexpr int64_t kChannelsOfProduct = 32;

template <typename Op> static Value weightOf(Op op) { return op.getWeight(); }
static Value weightOf(ir::Conv2dWeightGradOp op) { return op.getDweight(); }

template <typename Op> static bool hasLargeGroupsAs(Operation *op) {
  auto convolution = dyn_cast<Op>(op);
  if (!convolution || convolution.getGroups() == 1)
    return false;
  ArrayRef<int64_t> weight = cast<RankedTensorType>(weightOf(convolution).getType()).getShape();
  return std::min(weight[0] / int64_t(convolution.getGroups()), weight[1]) >= kChannelsOfProduct;
}

bool hasLargeGroups(Operation *op) {
  return hasLargeGroupsAs<ir::Conv2dOp>(op) || hasLargeGroupsAs<ir::Conv2dInputGradOp>(op) ||
         hasLargeGroupsAs<ir::Conv2dWeightGradOp>(op);
}

static FailureOr<LoweredKernel> lowerByContents(ir::KernelOp kernel, const StageModule &into, StringRef name,
                                                const Target &target, int64_t capacity) {
  Block &body = kernel.getBody().front();
  if (!body.getOps<ir::BlockwiseOp>().empty())
    return lowerAttentionKernel(kernel, into, name, target, capacity);
  if (llvm::any_of(body.getOps<ir::ContractionOp>(), isProduct))
    return lowerContractionKernel(kernel, into, name, target, capacity);
  return lowerLoopKernel(kernel, into.module, name, target, capacity);
}

FailureOr<LoweredKernel> lowerKernel(ir::KernelOp kernel, const StageModule &into, StringRef name, const Target &target,
                                     int64_t capacity) {
  kernel.getContext()->loadDialect<math::MathDialect, LLVM::LLVMDialect>();
  if (failed(loops::checkLayouts(kernel)))
    return failure();
  FailureOr<LoweredKernel> lowered = lowerByContents(kernel, into, name, target, capacity);
  if (succeeded(lowered)) {
    Block &body = kernel.getBody().front();
    SmallVector<Operation *> ops(llvm::make_pointer_range(body.without_terminator()));
    lowered->work = ir::workOf(ops, body.getArguments(), body.getTerminator()->getOperands(), capacity);
  }
  return lowered;
}

} // namespace sluice::cpu
