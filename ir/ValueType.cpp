#include "ir/ValueType.h"

#include "ir/Layout.h"
#include "ir/ops/Inference.h"

using namespace mlir;

namespace sluice::ir {

static constexpr int64_t kMostTile = 1 << 16; // elements

/// Whether the elements of a logical dimension have distinct positions: the dimension appears whole, or as its tiles
/// and the offsets in them.
static bool isLaidOut(unsigned logical, ArrayRef<PhysicalDim> dims) {
  SmallVector<PhysicalDim> own =
      llvm::to_vector(llvm::make_filter_range(dims, [&](const PhysicalDim &dim) { return dim.logical == logical; }));
  if (own.size() == 1)
    return own[0].kind == PhysicalDim::Whole;
  return own.size() == 2 && own[0].kind != PhysicalDim::Whole && own[1].kind != PhysicalDim::Whole &&
         own[0].kind != own[1].kind && own[0].tile == own[1].tile && own[0].tile <= kMostTile;
}

static LogicalResult verifyLayout(Operation *op, RankedTensorType type) {
  AffineMapAttr layout = getAt(type).getLayout();
  if (!layout)
    return success();
  if (layout.getValue().getNumDims() != type.getRank())
    return op->emitOpError("has a value with a layout of ")
           << layout.getValue().getNumDims() << " dimensions for the shape " << printShape(type.getShape());
  FailureOr<SmallVector<PhysicalDim>> dims = getPhysicalDims(type);
  if (failed(dims))
    return op->emitOpError("has a value with a layout whose results are not all dimensions, or floordiv or "
                           "mod of one by a tile: ")
           << layout;
  for (unsigned i = 0; i < type.getRank(); ++i)
    if (!isLaidOut(i, *dims))
      return op->emitOpError(
                 "has a value with a layout that does not have each dimension once, whole or in tiles of at most ")
             << kMostTile << ": d" << i << " of " << layout;
  return success();
}

LogicalResult verifyValueType(Operation *op, Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor)
    return op->emitOpError() << "has a value of type " << type << ", which is no ranked tensor";
  SmallVector<Type> inferred;
  if (failed(addResult(op->getLoc(), tensor.getShape(), tensor.getElementType(), inferred)))
    return failure();
  if (!tensor.getEncoding())
    return success();
  AtAttr at = getAt(type);
  if (!at || (!at.getDevice() && !at.getLayout()) || (at.getDevice() && at.getDevice().empty()))
    return op->emitOpError() << "has a value of type " << type
                             << ", whose encoding names neither a device nor a layout";
  return verifyLayout(op, tensor);
}

} // namespace sluice::ir
