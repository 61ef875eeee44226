#include "backends/cpu/compiler/product/ImageFormula.h"

#include "backends/cpu/compiler/Layouts.h"
#include "backends/cpu/compiler/product/WindowProduct.h"
#include "backends/cpu/compiler/product/window/WeightGradientPlan.h"
#include "ir/Layout.h"
#include "ir/OpClass.h"

namespace sluice::cpu {

using namespace mlir;

/// Whether the op spreads a value per channel, or a number, over an image.
static bool spreadsChannels(Operation *op) {
  auto expand = dyn_cast<ir::ExpandOp>(op);
  return expand && (expand.getDims().empty() || expand.getDims() == ArrayRef<int64_t>{1});
}

std::optional<ImageFormula> ImageFormula::of(Operation *gradient, llvm::function_ref<bool(Operation *)> isInside,
                                             const Target &target, int64_t capacity) {
  auto op = dyn_cast<ir::Conv2dWeightGradOp>(gradient);
  if (!op || !op.getX().getDefiningOp() || !isInside(op.getX().getDefiningOp()))
    return std::nullopt;
  auto typeOf = [](Value value) { return cast<RankedTensorType>(value.getType()); };
  RankedTensorType type = typeOf(op.getX());
  if (!type.getElementType().isF32() && !type.getElementType().isF64())
    return std::nullopt;
  ImageFormula formula{op.getX(), {}, {}};
  SmallVector<Value> work{op.getX()};
  while (!work.empty()) {
    Value value = work.pop_back_val();
    Operation *maker = value.getDefiningOp();
    if (!maker || !isInside(maker)) {
      if (typeOf(value) != type || (formula.source && formula.source != value))
        return std::nullopt;
      formula.source = value;
      continue;
    }
    if (!formula.ops.insert(maker))
      continue;
    bool isNumber = isa<ir::FullOp>(maker), isOfImage = ir::haveOneSpace(typeOf(value), type);
    if (isNumber && isOfImage)
      continue;
    if (spreadsChannels(maker) && isOfImage) {
      Operation *vector = maker->getOperand(0).getDefiningOp();
      if (vector && isInside(vector)) // not one value per channel in memory
        return std::nullopt;
      continue;
    }
    if (!isa<ir::ElementwiseOp>(maker) || !isOfImage)
      return std::nullopt;
    llvm::append_range(work, maker->getOperands());
  }
  Convolution convolution = WindowProduct::of(gradient)->geometry(capacity);
  if (!formula.source || convolution.groups > 1 || !WeightGradientPlan(convolution, target).copies)
    return std::nullopt;
  return formula;
}

} // namespace sluice::cpu
