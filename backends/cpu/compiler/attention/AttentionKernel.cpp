#include "backends/cpu/compiler/attention/AttentionKernel.h"

#include "backends/cpu/compiler/Layouts.h"
#include "backends/cpu/compiler/attention/Attention.h"
#include "backends/cpu/compiler/loops/WidenOperands.h"
#include "ir/Layout.h"

namespace sluice::cpu {

using namespace mlir;

static RankedTensorType attentionTypeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

template <typename Op> static bool isTooDeep(Operation *op) {
  auto attention = dyn_cast<Op>(op);
  return attention && std::max(attentionTypeOf(attention.getQ()).getDimSize(3),
                               attentionTypeOf(attention.getV()).getDimSize(3)) > kDeepestAttention;
}

std::string reasonAgainstAttention(Operation *op) {
  if (isTooDeep<ir::ScaledDotProductAttentionOp>(op) || isTooDeep<ir::AttentionQueryGradOp>(op) ||
      isTooDeep<ir::AttentionKeyValueGradOp>(op))
    return "the CPU's kernels of attention are for heads of at most " + std::to_string(kDeepestAttention) + " elements";
  return "";
}

namespace {

/// A kernel with one attention op.
class AttentionKernel {
public:
  AttentionKernel(ir::KernelOp kernel, const StageModule &into, StringRef name, const Target &target, int64_t capacity)
      : kernel(kernel), yield(cast<ir::YieldOp>(kernel.getBody().front().getTerminator())), into(into), name(name),
        target(target), capacity(capacity), widened(kernel, into, name, target, capacity) {}

  FailureOr<LoweredKernel> lower(ir::BlockwiseOp root);

private:
  template <typename Op> Attention describe(Op op);
  template <typename Op> void addGradientOperands(Op op, Attention &attention);
  Place placeOf(Value operand);
  Attention::Tensor tensorOf(Value operand);
  Attention::Mask maskOf(Value mask);
  Attention::Result resultOf(Value result);
  Stage emit(Operation *root);

  ir::KernelOp kernel;
  ir::YieldOp yield;
  StageModule into;
  StringRef name;
  const Target &target;
  int64_t capacity;
  WidenOperands widened;
};

} // namespace

FailureOr<LoweredKernel> AttentionKernel::lower(ir::BlockwiseOp root) {
  for (Value operand : root->getOperands())
    if (!isa<BlockArgument>(operand))
      return root.emitOpError("reads what is computed in the same kernel; the CPU reads the operands of attention from "
                              "memory");
  if (failed(widened.widen(root)))
    return failure();
  LoweredKernel lowered;
  llvm::append_range(lowered.stages, widened.stages());
  lowered.stages.push_back(emit(root));
  lowered.workspaceBytes = widened.workspaceBytes();
  lowered.hasBodies = into.hasBodies;
  return lowered;
}

Stage AttentionKernel::emit(Operation *root) {
  std::string stage = (name + "_attention").str();
  if (auto op = dyn_cast<ir::ScaledDotProductAttentionOp>(root)) {
    Attention attention = describe(op);
    attention.y = resultOf(op.getY());
    attention.logsumexpResult = resultOf(op.getLogsumexp());
    return emitAttention(into, stage, op.getLoc(), attention, target);
  }
  if (auto op = dyn_cast<ir::AttentionQueryGradOp>(root)) {
    Attention attention = describe(op);
    addGradientOperands(op, attention);
    attention.dQ = resultOf(op.getDq());
    return emitAttentionQueryGradient(into, stage, op.getLoc(), attention, target);
  }
  auto op = cast<ir::AttentionKeyValueGradOp>(root);
  Attention attention = describe(op);
  addGradientOperands(op, attention);
  attention.dK = resultOf(op.getDk());
  attention.dV = resultOf(op.getDv());
  return emitAttentionKeyValueGradient(into, stage, op.getLoc(), attention, target);
}

template <typename Op> Attention AttentionKernel::describe(Op op) {
  RankedTensorType q = attentionTypeOf(op.getQ()), k = attentionTypeOf(op.getK()), v = attentionTypeOf(op.getV());
  Attention attention;
  attention.element = ir::getAccumulator(q.getElementType());
  attention.batchIsRows = q.isDynamicDim(0);
  attention.batch = attention.batchIsRows ? capacity : q.getDimSize(0);
  attention.heads = q.getDimSize(1);
  attention.headsOfKeys = k.getDimSize(1);
  attention.queries = q.getDimSize(2);
  attention.keys = k.getDimSize(2);
  attention.depth = q.getDimSize(3);
  attention.valueDepth = v.getDimSize(3);
  attention.block = int64_t(op.getBlock());
  attention.causal = op.getCausal();
  attention.scale = op.getScale().convertToDouble();
  attention.q = tensorOf(op.getQ());
  attention.k = tensorOf(op.getK());
  attention.v = tensorOf(op.getV());
  if (op.getMask())
    attention.mask = maskOf(op.getMask());
  return attention;
}

template <typename Op> void AttentionKernel::addGradientOperands(Op op, Attention &attention) {
  attention.dY = tensorOf(op.getDy());
  attention.logsumexp = tensorOf(op.getLogsumexp());
  attention.delta = tensorOf(op.getDelta());
}

/// The operand in the element type of sums: its widened copy, if any.
Place AttentionKernel::placeOf(Value operand) {
  if (std::optional<int64_t> offset = widened.offsetOf(operand))
    return {int64_t(kernel.getNumOperands() + kernel.getNumResults()), *offset};
  return {int64_t(cast<BlockArgument>(operand).getArgNumber()), 0};
}

Attention::Tensor AttentionKernel::tensorOf(Value operand) {
  SmallVector<int64_t> strides = ir::getStrides(attentionTypeOf(operand), capacity);
  return {placeOf(operand), strides[0], strides[1], strides[2]};
}

Attention::Mask AttentionKernel::maskOf(Value mask) {
  RankedTensorType type = attentionTypeOf(mask);
  bool isBool = type.getElementType().isInteger(1);
  Attention::Mask result;
  result.place = placeOf(mask);
  result.stored = isBool ? IntegerType::get(type.getContext(), 8) : ir::getAccumulator(type.getElementType());
  for (auto [dim, stride] : llvm::enumerate(ir::getStrides(type, capacity)))
    result.strides[dim] = type.getDimSize(dim) == 1 ? 0 : stride;
  return result;
}

Attention::Result AttentionKernel::resultOf(Value result) {
  auto yielded = llvm::find(yield.getOperands(), result);
  if (yielded == yield.getOperands().end())
    return {};
  RankedTensorType type = attentionTypeOf(result);
  SmallVector<int64_t> strides = ir::getStrides(type, capacity);
  int64_t number = std::distance(yield.getOperands().begin(), yielded);
  return {{{int64_t(kernel.getNumOperands()) + number, 0}, strides[0], strides[1], strides[2]}, type.getElementType()};
}

FailureOr<LoweredKernel> lowerAttentionKernel(ir::KernelOp kernel, const StageModule &into, StringRef name,
                                              const Target &target, int64_t capacity) {
  ir::BlockwiseOp root = *kernel.getBody().front().getOps<ir::BlockwiseOp>().begin();
  return AttentionKernel(kernel, into, name, target, capacity).lower(root);
}

} // namespace sluice::cpu
