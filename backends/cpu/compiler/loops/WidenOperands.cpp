#include "backends/cpu/compiler/loops/WidenOperands.h"

#include "backends/cpu/compiler/loops/LoopNest.h"
#include "ir/Layout.h"
#include "ir/Work.h"

namespace sluice::cpu {

using namespace mlir;
using namespace loops;

Value WidenOperands::sourceOf(Value value) {
  Operation *op = value.getDefiningOp();
  return op && ir::isWidening(op) ? op->getOperand(0) : value;
}

LogicalResult WidenOperands::widen(Operation *root, Value left) {
  for (Value operand : root->getOperands()) {
    Value source = sourceOf(operand);
    bool isDone = operand == left || byteOffsets.contains(source);
    if (!isDone && ir::isHalf(getElementTypeOrSelf(source.getType())))
      if (failed(widenOne(cast<BlockArgument>(source))))
        return failure();
  }
  return success();
}

std::optional<int64_t> WidenOperands::offsetOf(Value operand) const {
  auto found = byteOffsets.find(sourceOf(operand));
  if (found == byteOffsets.end())
    return std::nullopt;
  return found->second / int64_t(sizeof(float));
}

LogicalResult WidenOperands::widenOne(BlockArgument operand) {
  auto type = cast<RankedTensorType>(operand.getType());
  RankedTensorType wide = ir::withElement(type, ir::getAccumulator(type.getElementType()));
  Memory from{int64_t(operand.getArgNumber()), 0, type};
  Memory to{int64_t(kernel.getNumOperands() + kernel.getNumResults()), bytes, wide};
  Formulas formulas;
  LoopNest nest{(name + "_widen_" + Twine(stages_.size())).str(),
                operand.getLoc(),
                formulas,
                wide,
                std::nullopt,
                {},
                8,
                /*folds=*/false,
                nullptr,
                nullptr,
                nullptr};
  nest.bytesPerElement =
      double(ir::getElementBytes(type.getElementType()) + ir::getElementBytes(wide.getElementType()));
  nest.prepare = [&](Elements &e) { e.bind(operand, from); };
  nest.outputs.push_back({[operand](Elements &e, AffineExpr, ArrayRef<AffineExpr> index) {
                            return SmallVector<Element>{e.element(operand, index)};
                          },
                          {to}});
  FailureOr<EmittedNest> emitted = emitLoopNest(nest, into.module, target, capacity);
  if (failed(emitted))
    return failure();
  stages_.push_back(emitted->stage);
  byteOffsets[operand] = bytes;
  bytes += llvm::alignTo(ir::getBufferBytes(wide, capacity), 64);
  return success();
}

} // namespace sluice::cpu
