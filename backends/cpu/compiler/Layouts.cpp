#include "backends/cpu/compiler/Layouts.h"

#include "backends/cpu/compiler/contraction/Contraction.h"
#include "ir/Layout.h"

namespace sluice::cpu {

using namespace mlir;

AffineMap getMatrixPanels(MLIRContext *context, int64_t panel) {
  AffineExpr n = getAffineDimExpr(0, context), k = getAffineDimExpr(1, context);
  return AffineMap::get(2, 0, {n.floorDiv(panel), k, n % panel}, context);
}

AffineMap getFilterPanels(MLIRContext *context, int64_t panel) {
  AffineExpr o = getAffineDimExpr(0, context), c = getAffineDimExpr(1, context);
  return AffineMap::get(
      4, 0, {o.floorDiv(panel), getAffineDimExpr(2, context), getAffineDimExpr(3, context), c, o % panel}, context);
}

static int64_t panelOf(RankedTensorType weights, const Target &target) {
  return panelWidth(weights.getDimSize(0), target.lanes(weights.getElementTypeBitWidth()));
}

static LayoutPreference nhwc(MLIRContext *context, bool required) { return {ir::getNhwc(context), required}; }

static LayoutPreference filter(RankedTensorType type, const Target &target) {
  return {getFilterPanels(type.getContext(), panelOf(type, target)), true};
}

static LayoutPreference ofMatmul(ir::MatmulOp op, bool isResult, unsigned number, const Target &target) {
  if (isResult)
    return {};
  auto type = cast<RankedTensorType>(op->getOperand(number).getType());
  if (number == 0)
    return {AffineMap::getMultiDimIdentityMap(type.getRank(), op.getContext()), true};
  bool isWeight = op.getTransposeB() && type.getRank() == 2 && type.hasStaticShape();
  if (isWeight)
    return {getMatrixPanels(op.getContext(), panelOf(type, target)), false};
  return {};
}

LayoutPreference preferredLayout(Operation *op, bool isResult, unsigned number, const Target &target) {
  MLIRContext *context = op->getContext();
  Value value = isResult ? Value(op->getResult(number)) : op->getOperand(number);
  auto type = cast<RankedTensorType>(value.getType());
  if (auto matmul = dyn_cast<ir::MatmulOp>(op))
    return ofMatmul(matmul, isResult, number, target);
  if (isa<ir::Conv2dOp, ir::Conv2dInputGradOp>(op))
    return !isResult && number == 1 ? filter(type, target) : nhwc(context, true);
  if (isa<ir::Conv2dWeightGradOp>(op))
    return isResult ? filter(type, target) : nhwc(context, true);
  if (isa<ir::MaxPool2dOp, ir::MaxPool2dGradOp, ir::AvgPool2dOp, ir::AvgPool2dGradOp>(op))
    return nhwc(context, false);
  return {};
}

} // namespace sluice::cpu
