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

Convolution WindowProduct::geometry(int64_t capacity) const {
  auto typeOf = [](Value value) { return cast<RankedTensorType>(value.getType()); };
  auto axisOf = [](const ir::Window &window) {
    return Convolution::Axis{window.size, window.kernel, window.stride, window.dilation, window.before, window.after};
  };
  RankedTensorType x = typeOf(image);
  Convolution convolution;
  convolution.element = ir::getAccumulator(x.getElementType());
  convolution.rows = x.isDynamicDim(0) ? capacity : x.getDimSize(0);
  convolution.inputChannels = x.getDimSize(1);
  convolution.outputChannels = typeOf(output).getDimSize(1);
  convolution.groups = groups;
  convolution.height = axisOf(windows[0]);
  convolution.width = axisOf(windows[1]);
  return convolution;
}

WindowProduct::Part WindowProduct::partOf(bool isResult, unsigned number) const {
  if (isResult)
    return result;
  // The operands are in the order of the parts, without the result.
  return number == 0 ? (result == Image ? Output : Image) : (result == Weights ? Output : Weights);
}

} // namespace sluice::cpu
