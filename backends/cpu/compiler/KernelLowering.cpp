#include "backends/cpu/compiler/KernelLowering.h"

#include "backends/cpu/compiler/attention/AttentionKernel.h"
#include "backends/cpu/compiler/loops/LoopKernel.h"
#include "backends/cpu/compiler/product/ContractionKernel.h"
#include "backends/cpu/compiler/product/MatrixProduct.h"
#include "backends/cpu/compiler/product/WindowProduct.h"
#include "backends/loops/LoopKernel.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"

namespace sluice::cpu {

using namespace mlir;

/// Whether a product generator handles the op. Grouped convolutions that are not depthwise, and some products, are loop
/// nests.
static bool isProduct(Operation *op, int64_t capacity) {
  std::optional<WindowProduct> windows = WindowProduct::of(op);
  return windows ? windows->groups == 1 || windows->isDepthwiseProduct() : isProductOfMatrices(op, capacity);
}

// Minimum input and output channels of a group, for a separate product per group.
static constexpr int64_t kChannelsOfProduct = 32;

bool hasLargeGroups(Operation *op) {
  std::optional<WindowProduct> windows = WindowProduct::of(op);
  if (!windows || windows->groups == 1)
    return false;
  ArrayRef<int64_t> weights = cast<RankedTensorType>(windows->weights.getType()).getShape();
  return std::min(weights[0] / windows->groups, weights[1]) >= kChannelsOfProduct;
}

static FailureOr<LoweredKernel> lowerByContents(ir::KernelOp kernel, const StageModule &into, StringRef name,
                                                const Target &target, int64_t capacity) {
  Block &body = kernel.getBody().front();
  if (!body.getOps<ir::BlockwiseOp>().empty())
    return lowerAttentionKernel(kernel, into, name, target, capacity);
  auto isOfProduct = [&](Operation &op) { return isProduct(&op, capacity); };
  if (llvm::any_of(body.without_terminator(), isOfProduct))
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
