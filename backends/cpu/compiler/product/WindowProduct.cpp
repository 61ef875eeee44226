#include "backends/cpu/compiler/product/WindowProduct.h"

#include "llvm/ADT/TypeSwitch.h"

namespace sluice::cpu {

using namespace mlir;

template <typename Op>
static std::optional<WindowProduct> describe(Op op, WindowProduct::Part result, Value image, Value weights,
                                             Value output) {
  auto spatial = [](Value value) { return cast<RankedTensorType>(value.getType()).getShape().drop_front(2); };
  return WindowProduct{
      image,
      weights,
      output,
      result,
      ir::getWindows(spatial(image), spatial(weights), op.getStride(), op.getPadding(), op.getDilation()),
      int64_t(op.getGroups())};
}

std::optional<WindowProduct> WindowProduct::of(Operation *op) {
  return llvm::TypeSwitch<Operation *, std::optional<WindowProduct>>(op)
      .Case([](ir::Conv2dOp op) { return describe(op, Output, op.getX(), op.getWeight(), op.getY()); })
      .Case([](ir::Conv2dInputGradOp op) { return describe(op, Image, op.getDx(), op.getWeight(), op.getDy()); })
      .Case([](ir::Conv2dWeightGradOp op) { return describe(op, Weights, op.getX(), op.getDweight(), op.getDy()); })
      .Default(std::optional<WindowProduct>());
}

bool WindowProduct::isDepthwiseProduct() const {
  constexpr int64_t kMostTaps = 512, kMostAcross = 32; // taps along the width are unrolled
  auto channelsOf = [](Value value) { return cast<RankedTensorType>(value.getType()).getDimSize(1); };
  return result != Weights && groups > 1 && channelsOf(image) == groups && channelsOf(output) == groups &&
         windows[1].kernel <= kMostAcross && windows[0].kernel * windows[1].kernel <= kMostTaps;
}

WindowProduct::Part WindowProduct::partOf(bool isResult, unsigned number) const {
  if (isResult)
    return result;
  // The operands are in the order of the parts, without the result.
  return number == 0 ? (result == Image ? Output : Image) : (result == Weights ? Output : Weights);
}

} // namespace sluice::cpu
