#include "sluice/backend/blocks.h"
#include "ir/Dialect.h"
#include "ir/build/Lane.h"
#include "ir/ops/Inference.h"

using namespace mlir;

namespace sluice::ir {

LogicalResult DequantizeBlocksOp::inferReturnTypes(MLIRContext *context, MaybeLocation loc, ValueRange operands,
                                                   DictionaryAttr attributes, OpaqueProperties properties, RegionRange,
                                                   SmallVectorImpl<Type> &types) {
  Adaptor op(operands, attributes, properties);
  SmallVector<int64_t> shape(shapeOf(op.getX()));
  int64_t axis = op.getAxis();
  if (failed(checkAxes(loc, axis, shape)))
    return failure();
  if (!tensorOf(op.getX()).hasStaticShape())
    return inferenceFailure(loc, "blocks have known sizes; got ", printShape(shape));
  if (shape[axis] % SLUICE_BLOCK_ELEMENTS != 0)
    return inferenceFailure(loc, "axis ", axis, " of ", printShape(shape), " is not a multiple of ",
                            int64_t(SLUICE_BLOCK_ELEMENTS));
  SmallVector<int64_t> blocks(shape);
  blocks[axis] /= SLUICE_BLOCK_ELEMENTS;
  if (shapeOf(op.getScales()) != ArrayRef(blocks))
    return inferenceFailure(loc, "scales differ from the blocks: ", printShape(shapeOf(op.getScales())), " and ",
                            printShape(blocks));
  return addResult(loc, shape, Float32Type::get(context), types);
}

/// The index of an element's scale.
template <typename Index, typename Divide>
static SmallVector<Index> indexOfScale(ArrayRef<Index> index, int64_t axis, Divide divide) {
  SmallVector<Index> scale(index);
  scale[axis] = divide(scale[axis]);
  return scale;
}

SmallVector<HostTensor> DequantizeBlocksOp::evaluate(ArrayRef<HostTensor> operands, int64_t) {
  const HostTensor &x = operands[0], &scales = operands[1];
  HostTensor y(x.shape);
  forEachIndex(y.shape, [&](ArrayRef<int64_t> index) {
    SmallVector<int64_t> ofScale =
        indexOfScale(index, getAxis(), [](int64_t place) { return place / SLUICE_BLOCK_ELEMENTS; });
    y.at(index) = double(int8_t(uint8_t(x.at(index)))) * scales.at(ofScale);
  });
  return {y};
}

Value DequantizeBlocksOp::buildElement(ElementBuilder &builder, unsigned, ArrayRef<AffineExpr> index) {
  SmallVector<AffineExpr> ofScale =
      indexOfScale(index, getAxis(), [](AffineExpr place) { return place.floorDiv(int64_t(SLUICE_BLOCK_ELEMENTS)); });
  Lane x(builder.builder(), builder.loc(), builder.operand(0, index));
  Lane scale(builder.builder(), builder.loc(), builder.operand(1, ofScale));
  return castTo(x, elementOf(getY()), /*fromUnsigned=*/false, /*toUnsigned=*/false) * scale;
}

} // namespace sluice::ir
