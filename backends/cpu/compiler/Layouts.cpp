#include "backends/cpu/compiler/Layouts.h"

#include "backends/cpu/compiler/product/Contraction.h"
#include "backends/cpu/compiler/product/MatrixProduct.h"
#include "backends/cpu/compiler/product/WindowProduct.h"
#include "ir/Layout.h"

namespace sluice::cpu {

using namespace mlir;

AffineMap getMatrixPanels(MLIRContext *context, int64_t panel, unsigned along) {
  AffineExpr n = getAffineDimExpr(along, context), k = getAffineDimExpr(1 - along, context);
  return AffineMap::get(2, 0, {n.floorDiv(panel), k, n % panel}, context);
}

AffineMap getFilterPanels(MLIRContext *context, int64_t panel) {
  AffineExpr o = getAffineDimExpr(0, context), c = getAffineDimExpr(1, context);
  return AffineMap::get(
      4, 0, {o.floorDiv(panel), getAffineDimExpr(2, context), getAffineDimExpr(3, context), c, o % panel}, context);
}

int64_t bitsOfSums(RankedTensorType type) { return ir::getAccumulator(type.getElementType()).getIntOrFloatBitWidth(); }

static int64_t panelOf(RankedTensorType weights, const Target &target) {
  return panelWidth(weights.getDimSize(0), bitsOfSums(weights), target);
}

static LayoutPreference nhwc(MLIRContext *context, bool required) { return {ir::getNhwc(context), required}; }

static LayoutPreference filter(RankedTensorType type, const Target &target) {
  return {getFilterPanels(type.getContext(), panelOf(type, target)), true};
}

int64_t panelAlong(RankedTensorType type, unsigned along) {
  SmallVector<ir::PhysicalDim> dims = *ir::getPhysicalDims(type);
  for (const ir::PhysicalDim &dim : dims)
    if (dim.kind == ir::PhysicalDim::Mod && dim.logical == along)
      return dim.tile;
  return 0;
}

AffineMap getGroupedFilter(MLIRContext *context) {
  return AffineMap::getPermutationMap(ArrayRef<unsigned>{2, 3, 1, 0}, context);
}

// The lanes of grouped convolutions run along the channels, also in loop nests.
static LayoutPreference ofGroups(MLIRContext *context, const WindowProduct &product, bool isWeight) {
  return {isWeight ? getGroupedFilter(context) : ir::getNhwc(context), product.isDepthwiseProduct()};
}

/// Attention reads and writes contiguous elements; masks and per-query values keep their layouts.
static LayoutPreference ofAttention(RankedTensorType type, bool isVectors) {
  if (isVectors && ir::isUncut(type) && ir::getPhysicalDims(type)->back().logical == type.getRank() - 1)
    return {};
  return {AffineMap::getMultiDimIdentityMap(type.getRank(), type.getContext()), true};
}

LayoutPreference preferredLayout(Operation *op, bool isResult, unsigned number, const Target &target,
                                 int64_t capacity) {
  MLIRContext *context = op->getContext();
  Value value = isResult ? Value(op->getResult(number)) : op->getOperand(number);
  auto type = cast<RankedTensorType>(value.getType());
  if (std::optional<WindowProduct> windows = WindowProduct::of(op)) {
    bool isWeights = windows->partOf(isResult, number) == WindowProduct::Weights;
    if (windows->groups > 1)
      return ofGroups(context, *windows, isWeights);
    return isWeights ? filter(type, target) : nhwc(context, true);
  }
  if (std::optional<MatrixProduct> product = MatrixProduct::of(op, capacity))
    return preferredLayoutOfMatrices(*product, isResult, number, target);
  if (auto attention = dyn_cast<ir::BlockwiseOp>(op))
    return ofAttention(type, attention.holdsVectors(isResult, number));
  if (isa<ir::MaxPool2dOp, ir::MaxPool2dGradOp, ir::AvgPool2dOp, ir::AvgPool2dGradOp>(op))
    return nhwc(context, false);
  return {};
}

} // namespace sluice::cpu
