#include "backends/cuda/compiler/Layouts.h"

#include "backends/cuda/compiler/attention/AttentionKernel.h"
#include "ir/Dialect.h"
#include <tuple>

namespace sluice::cuda {

using namespace mlir;

// Contiguous extents of a product's matrices are padded to a multiple of this many elements, so that a load can take 16
// bytes of halves. Extents below the minimum are not padded.
static constexpr uint32_t kPadded = 8;
static constexpr int64_t kWorthPadding = 256;
// Halves in a pack, which one load of 8 bytes reads.
static constexpr uint32_t kPack = 4;

static Operation *operationOf(const sluice_op_view &op) { return static_cast<Operation *>(op.operation); }

bool isProduct(const sluice_op_view &op) {
  auto product = dyn_cast<ir::ContractionOp>(operationOf(op));
  return product && product.getGroups() == 1;
}

/// These dimensions, each of them whole, outermost first.
static std::vector<sluice_layout_dim> whole(llvm::ArrayRef<uint32_t> dims) {
  std::vector<sluice_layout_dim> layout;
  for (uint32_t dim : dims)
    layout.push_back({dim, SLUICE_LAYOUT_WHOLE, 0});
  return layout;
}

static std::vector<sluice_layout_dim> rowMajor(size_t rank) {
  return whole(llvm::to_vector(llvm::seq<uint32_t>(0, uint32_t(rank))));
}

/// Row-major, with the last dimension padded.
static std::vector<sluice_layout_dim> padded(size_t rank) {
  uint32_t last = uint32_t(rank) - 1;
  std::vector<sluice_layout_dim> layout = rowMajor(rank);
  layout.back() = {last, SLUICE_LAYOUT_TILE_NUMBER, kPadded};
  layout.push_back({last, SLUICE_LAYOUT_PLACE_IN_TILE, kPadded});
  return layout;
}

static bool wantsPadding(const sluice_type_view &type) {
  int64_t last = type.rank < 2 ? 0 : type.shape[type.rank - 1];
  return last >= kWorthPadding && last % kPadded != 0;
}

/// Whether the layout has tiles, other than those that only pad the last dimension.
static bool isTiled(const sluice_type_view &type) {
  auto isWhole = [](const sluice_layout_dim &dim) { return dim.part == SLUICE_LAYOUT_WHOLE; };
  auto isSame = [](const sluice_layout_dim &one, const sluice_layout_dim &other) {
    return std::tie(one.dimension, one.part, one.tile) == std::tie(other.dimension, other.part, other.tile);
  };
  llvm::ArrayRef layout(type.layout, type.num_layout);
  return !llvm::all_of(layout, isWhole) && !llvm::equal(layout, padded(type.rank), isSame);
}

/// Values of a convolution or of one of its gradients: the image or its gradient, over which windows move, and the filter
/// or its gradient.
static Value imageOf(Operation *op) {
  return isa<ir::Conv2dInputGradOp>(op) ? Value(op->getResult(0)) : op->getOperand(0);
}
static Value filterOf(Operation *op) {
  return isa<ir::Conv2dWeightGradOp>(op) ? Value(op->getResult(0)) : op->getOperand(1);
}

/// Whether windows of an image with this many channels begin and end at pack boundaries, in each row.
static bool moveByPacks(Operation *op, int64_t channels) {
  auto widthOf = [](Value value) { return cast<RankedTensorType>(value.getType()).getDimSize(3); };
  auto numbers = [&](const char *name) { return op->getAttrOfType<DenseI64ArrayAttr>(name).asArrayRef(); };
  auto arePacks = [&](int64_t pixels) { return pixels * channels % kPack == 0; };
  return arePacks(widthOf(imageOf(op))) && arePacks(widthOf(filterOf(op))) && arePacks(numbers("stride")[1]) &&
         numbers("dilation")[1] == 1 && llvm::all_of(numbers("padding"), [](int64_t size) { return size == 0; });
}

/// Convolutions read and write channels contiguously, including filters, so that loads are wide. Filters of groups have
/// one channel of each group. Three channels of a half-precision image form a pack with a fourth channel of zeros.
static std::vector<sluice_layout_dim> channelsLast(Operation *op, Value value) {
  constexpr int64_t kChannelsOfImage = 3;
  auto product = dyn_cast<ir::ContractionOp>(op);
  auto type = cast<RankedTensorType>(value.getType());
  bool isFilter = product && value == filterOf(op), isImage = product && value == imageOf(op);
  if (isFilter && product.getGroups() > 1)
    return whole({2, 3, 1, 0});
  bool isPadded = (isFilter || isImage) && product.getGroups() == 1 && type.getDimSize(1) == kChannelsOfImage &&
                  ir::isHalf(type.getElementType()) && !moveByPacks(op, kChannelsOfImage);
  if (!isPadded)
    return whole({0, 2, 3, 1});
  return {{0, SLUICE_LAYOUT_WHOLE, 0},
          {1, SLUICE_LAYOUT_TILE_NUMBER, kPack},
          {2, SLUICE_LAYOUT_WHOLE, 0},
          {3, SLUICE_LAYOUT_WHOLE, 0},
          {1, SLUICE_LAYOUT_PLACE_IN_TILE, kPack}};
}

static bool wantsChannelsLast(Operation *op) {
  return isa<ir::Conv2dOp, ir::Conv2dInputGradOp, ir::Conv2dWeightGradOp, ir::MaxPool2dOp, ir::MaxPool2dGradOp,
             ir::AvgPool2dOp, ir::AvgPool2dGradOp>(op);
}

/// Heads of attention are inside of items: products that compute all heads at once write this layout, and products that
/// consume all heads read it.
static std::optional<LayoutPreference> layoutForAttention(ir::BlockwiseOp attention, Value value, bool isResult,
                                                          unsigned number) {
  auto type = cast<RankedTensorType>(value.getType());
  bool vectors = attention.holdsVectors(isResult, number), isLaidOut = isLaidOutForAttention(type, vectors);
  if (vectors)
    return LayoutPreference{whole({0, 2, 1, 3}), !isLaidOut};
  return isLaidOut ? std::nullopt : std::optional(LayoutPreference{rowMajor(size_t(type.getRank())), true});
}

std::optional<LayoutPreference> preferredLayout(const sluice_op_view &view, bool isResult, unsigned number,
                                                const sluice_type_view &type) {
  Operation *op = operationOf(view);
  Value value = isResult ? Value(op->getResult(number)) : op->getOperand(number);
  if (wantsChannelsLast(op))
    return LayoutPreference{channelsLast(op, value), isProduct(view)};
  if (auto attention = dyn_cast<ir::BlockwiseOp>(op))
    return layoutForAttention(attention, value, isResult, number);
  if (isProduct(view) && isTiled(type))
    return LayoutPreference{rowMajor(type.rank), true};
  if (isProduct(view) && wantsPadding(type))
    return LayoutPreference{padded(type.rank), false};
  return std::nullopt;
}

} // namespace sluice::cuda
