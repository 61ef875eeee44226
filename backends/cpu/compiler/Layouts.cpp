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

/// Of the elements in which products of such a type are added.
static int64_t lanesOfSums(RankedTensorType type, const Target &target) {
  return target.lanes(ir::getAccumulator(type.getElementType()).getIntOrFloatBitWidth());
}

static int64_t panelOf(RankedTensorType weights, const Target &target) {
  return panelWidth(weights.getDimSize(0), lanesOfSums(weights, target));
}

static LayoutPreference nhwc(MLIRContext *context, bool required) { return {ir::getNhwc(context), required}; }

static LayoutPreference filter(RankedTensorType type, const Target &target) {
  return {getFilterPanels(type.getContext(), panelOf(type, target)), true};
}

static LayoutPreference rowMajor(RankedTensorType type) {
  return {AffineMap::getMultiDimIdentityMap(type.getRank(), type.getContext()), true};
}

int64_t panelOfFirstDim(RankedTensorType type) {
  SmallVector<ir::PhysicalDim> dims = *ir::getPhysicalDims(type);
  for (const ir::PhysicalDim &dim : dims)
    if (dim.kind == ir::PhysicalDim::Mod && dim.logical == 0)
      return dim.tile;
  return 0;
}

bool isMadeTransposed(ir::MatmulOp op) {
  RankedTensorType y = op.getY().getType(), a = op.getA().getType();
  bool cutAlongM = y.getRank() == 2 && y.isDynamicDim(0) && !a.isDynamicDim(op.getTransposeA() ? 0 : 1);
  return y.getRank() == 2 && panelOfFirstDim(y) != 0 && !cutAlongM;
}

static bool isInPanels(RankedTensorType type) {
  int64_t panel = panelOfFirstDim(type);
  return panel != 0 && type.getRank() == 2 && ir::liesAs(type, getMatrixPanels(type.getContext(), panel));
}

/// Whether whole vectors of this type's elements fill its panels.
static bool vectorsFillPanels(RankedTensorType type, const Target &target) {
  return panelOfFirstDim(type) % lanesOfSums(type, target) == 0;
}

static bool isCut(RankedTensorType type) {
  return llvm::any_of(*ir::getPhysicalDims(type),
                      [](const ir::PhysicalDim &dim) { return dim.kind != ir::PhysicalDim::Whole; });
}

/// Lanes go along a row of the result, or of the transposed one in panels.
static bool canStore(ir::MatmulOp op, const Target &target) {
  RankedTensorType y = op.getY().getType();
  if (isInPanels(y))
    return isMadeTransposed(op) && vectorsFillPanels(y, target);
  return !isCut(y) && (*ir::getPhysicalDims(y)).back().logical == y.getRank() - 1;
}

static bool canReadB(ir::MatmulOp op, const Target &target) {
  RankedTensorType b = op.getB().getType();
  if (isInPanels(b))
    return !isMadeTransposed(op) && (!op.getTransposeB() || vectorsFillPanels(b, target));
  return !isCut(b);
}

// Convolutions in groups: lanes run along the channels.
static LayoutPreference ofGroups(MLIRContext *context, bool isWeight) {
  return {isWeight ? AffineMap::getPermutationMap(ArrayRef<unsigned>{2, 3, 1, 0}, context) : ir::getNhwc(context),
          false};
}

static LayoutPreference ofMatmul(ir::MatmulOp op, bool isResult, unsigned number, const Target &target) {
  RankedTensorType a = op.getA().getType(), b = op.getB().getType(), y = op.getY().getType();
  if (isResult)
    return y.getRank() > 2 || !canStore(op, target) ? rowMajor(y) : LayoutPreference();
  if (number == 0)
    return rowMajor(a);
  if (!canReadB(op, target))
    return rowMajor(b);
  bool isWeight = op.getTransposeB() && b.getRank() == 2 && b.hasStaticShape();
  return isWeight ? LayoutPreference{getMatrixPanels(op.getContext(), panelOf(b, target)), false} : LayoutPreference();
}

LayoutPreference preferredLayout(Operation *op, bool isResult, unsigned number, const Target &target) {
  MLIRContext *context = op->getContext();
  Value value = isResult ? Value(op->getResult(number)) : op->getOperand(number);
  auto type = cast<RankedTensorType>(value.getType());
  if (auto matmul = dyn_cast<ir::MatmulOp>(op))
    return ofMatmul(matmul, isResult, number, target);
  if (auto product = dyn_cast<ir::ContractionOp>(op); product && product.getGroups() > 1)
    return ofGroups(context, isa<ir::Conv2dWeightGradOp>(op) ? isResult : !isResult && number == 1);
  if (isa<ir::Conv2dOp, ir::Conv2dInputGradOp>(op))
    return !isResult && number == 1 ? filter(type, target) : nhwc(context, true);
  if (isa<ir::Conv2dWeightGradOp>(op))
    return isResult ? filter(type, target) : nhwc(context, true);
  if (isa<ir::MaxPool2dOp, ir::MaxPool2dGradOp, ir::AvgPool2dOp, ir::AvgPool2dGradOp>(op))
    return nhwc(context, false);
  return {};
}

} // namespace sluice::cpu
