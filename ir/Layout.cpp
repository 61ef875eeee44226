#include "ir/Layout.h"
#include "ir/reference/HostTensor.h"

using namespace mlir;

namespace sluice::ir {

static FailureOr<PhysicalDim> asPhysicalDim(AffineExpr expr) {
  if (auto dim = dyn_cast<AffineDimExpr>(expr))
    return PhysicalDim{PhysicalDim::Whole, dim.getPosition(), 0};
  auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
  if (!binary)
    return failure();
  auto dim = dyn_cast<AffineDimExpr>(binary.getLHS());
  auto tile = dyn_cast<AffineConstantExpr>(binary.getRHS());
  if (!dim || !tile || tile.getValue() <= 0)
    return failure();
  if (binary.getKind() == AffineExprKind::FloorDiv)
    return PhysicalDim{PhysicalDim::Div, dim.getPosition(), tile.getValue()};
  if (binary.getKind() == AffineExprKind::Mod)
    return PhysicalDim{PhysicalDim::Mod, dim.getPosition(), tile.getValue()};
  return failure();
}

FailureOr<SmallVector<PhysicalDim>> getPhysicalDims(RankedTensorType type) {
  SmallVector<PhysicalDim> dims;
  AtAttr at = getAt(type);
  if (!at || !at.getLayout()) {
    for (int64_t i = 0; i < type.getRank(); ++i)
      dims.push_back({PhysicalDim::Whole, unsigned(i), 0});
    return dims;
  }
  AffineMap map = at.getLayout().getValue();
  if (map.getNumDims() != type.getRank() || map.getNumSymbols() != 0)
    return failure();
  for (AffineExpr expr : map.getResults()) {
    FailureOr<PhysicalDim> dim = asPhysicalDim(expr);
    if (failed(dim))
      return failure();
    dims.push_back(*dim);
  }
  return dims;
}

bool isUncut(RankedTensorType type) {
  auto dims = getPhysicalDims(type);
  return succeeded(dims) && llvm::all_of(*dims, [](const PhysicalDim &dim) { return dim.kind == PhysicalDim::Whole; });
}

bool haveOneSpace(RankedTensorType a, RankedTensorType b) {
  return a.getShape() == b.getShape() && a.getEncoding() == b.getEncoding();
}

SmallVector<int64_t> getPhysicalShape(RankedTensorType type, int64_t capacity) {
  SmallVector<int64_t> shape;
  SmallVector<PhysicalDim> dims = *getPhysicalDims(type);
  for (PhysicalDim dim : dims) {
    int64_t size = type.isDynamicDim(dim.logical) ? capacity : type.getDimSize(dim.logical);
    if (dim.kind == PhysicalDim::Div)
      size = (size + dim.tile - 1) / dim.tile;
    else if (dim.kind == PhysicalDim::Mod)
      size = dim.tile;
    shape.push_back(size);
  }
  return shape;
}

SmallVector<int64_t> getStrides(RankedTensorType type, int64_t capacity) {
  SmallVector<int64_t> strides(type.getRank()), sizes = getPhysicalShape(type, capacity);
  SmallVector<PhysicalDim> dims = *getPhysicalDims(type);
  int64_t stride = 1;
  for (size_t place = dims.size(); place-- > 0; stride *= sizes[place])
    strides[dims[place].logical] = stride;
  return strides;
}

int64_t getElementBytes(Type element) {
#define SLUICE_DTYPE_BYTES(name, number, type, ...) sizeof(type),
  static constexpr int64_t bytes[] = {SLUICE_FOR_EACH_DTYPE(SLUICE_DTYPE_BYTES)};
#undef SLUICE_DTYPE_BYTES
  return bytes[*dtypeOf(element)];
}

int64_t getBufferBytes(RankedTensorType type, int64_t capacity) {
  int64_t bytes = getElementBytes(type.getElementType());
  for (int64_t size : getPhysicalShape(type, capacity))
    bytes *= size;
  return bytes;
}

void forEachElement(RankedTensorType type, int64_t rows, int64_t capacity,
                    llvm::function_ref<void(ArrayRef<int64_t>, int64_t)> visit) {
  SmallVector<PhysicalDim> dims = *getPhysicalDims(type);
  SmallVector<int64_t> sizes = getPhysicalShape(type, capacity);
  forEachIndex(runtimeShape(type, rows), [&](ArrayRef<int64_t> index) {
    int64_t place = 0;
    for (auto [dim, size] : llvm::zip_equal(dims, sizes)) {
      int64_t at = index[dim.logical];
      at = dim.kind == PhysicalDim::Div ? at / dim.tile : dim.kind == PhysicalDim::Mod ? at % dim.tile : at;
      place = place * size + at;
    }
    visit(index, place);
  });
}

LogicalBytes getLogicalBytes(RankedTensorType type) {
  int64_t bytes = getElementBytes(type.getElementType());
  for (int64_t size : type.getShape())
    bytes *= ShapedType::isDynamic(size) ? 1 : size;
  return type.hasStaticShape() ? LogicalBytes{bytes, 0} : LogicalBytes{0, bytes};
}

RankedTensorType withLayout(RankedTensorType type, AffineMap layout) {
  MLIRContext *context = type.getContext();
  StringAttr device = getDevice(type);
  AffineMapAttr map = layout && !layout.isIdentity() ? AffineMapAttr::get(layout) : AffineMapAttr();
  Attribute encoding = device || map ? AtAttr::get(context, device, map) : Attribute();
  return RankedTensorType::get(type.getShape(), type.getElementType(), encoding);
}

// The physical dimensions that hold more than one element.
static SmallVector<std::tuple<int, unsigned, int64_t>> shapeOfMemory(RankedTensorType type) {
  SmallVector<std::tuple<int, unsigned, int64_t>> dims;
  SmallVector<int64_t> sizes = getPhysicalShape(type, /*capacity=*/2);
  for (auto [dim, size] : llvm::zip_equal(*getPhysicalDims(type), sizes))
    if (size > 1)
      dims.push_back({dim.kind, dim.logical, dim.kind == PhysicalDim::Whole ? 0 : dim.tile});
  return dims;
}

bool liesAs(RankedTensorType type, AffineMap layout) {
  return shapeOfMemory(type) == shapeOfMemory(withLayout(type, layout));
}

bool areJoinedTiles(const PhysicalDim &outer, const PhysicalDim &inner) {
  return outer.kind == PhysicalDim::Div && inner.kind == PhysicalDim::Mod && outer.logical == inner.logical;
}

AffineMap getNhwc(MLIRContext *context) { return AffineMap::getPermutationMap(ArrayRef<int64_t>{0, 2, 3, 1}, context); }

} // namespace sluice::ir
