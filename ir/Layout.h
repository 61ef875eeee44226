// Physical layouts: an affine map from logical indices to physical ones, by floordiv and mod of single dimensions.
#pragma once

#include "ir/Dialect.h"
#include "mlir/IR/AffineMap.h"

namespace sluice::ir {

/// One physical dimension: a whole logical dimension, its tile number, or the offset in the tile.
struct PhysicalDim {
  enum Kind { Whole, Div, Mod } kind; // numbered as sluice_layout_part
  unsigned logical;
  int64_t tile; // of Div and Mod; 0 if whole
};

/// Whether `outer` numbers the tiles of a logical dimension and `inner`, the next physical dimension, is the offset in
/// the tile. Then the elements are ordered as if the dimension were whole.
bool areJoinedTiles(const PhysicalDim &outer, const PhysicalDim &inner);

/// The layout's dimensions, outermost first (row-major if the type has no layout); fails on maps of another form.
mlir::FailureOr<llvm::SmallVector<PhysicalDim>> getPhysicalDims(mlir::RankedTensorType type);

/// Whether the layout, if any, only permutes dimensions, without tiles.
bool isUncut(mlir::RankedTensorType type);

/// Whether values of these types have the same shape, and the same device and layout. Element types may differ.
bool haveOneSpace(mlir::RankedTensorType a, mlir::RankedTensorType b);

/// Sizes of the physical dimensions with `?` = capacity; tiles are rounded up.
llvm::SmallVector<int64_t> getPhysicalShape(mlir::RankedTensorType type, int64_t capacity);

/// The distance in elements along each logical dimension of a layout without tiles, with `?` = capacity.
llvm::SmallVector<int64_t> getStrides(mlir::RankedTensorType type, int64_t capacity);

/// Bytes of the buffer of a value of this type.
int64_t getBufferBytes(mlir::RankedTensorType type, int64_t capacity);

/// Bytes of one element in memory.
int64_t getElementBytes(mlir::Type element);

/// Calls `visit` with the logical index of every element of a value in a call with `rows` rows, and with the element's
/// position in the buffer.
void forEachElement(mlir::RankedTensorType type, int64_t rows, int64_t capacity,
                    llvm::function_ref<void(llvm::ArrayRef<int64_t> index, int64_t place)> visit);

/// Bytes of the elements alone, without padding: a constant part, and a part per row.
struct LogicalBytes {
  int64_t fixed = 0, perRow = 0;
};
LogicalBytes getLogicalBytes(mlir::RankedTensorType type);

/// `type` with this layout; null and the identity mean row-major.
mlir::RankedTensorType withLayout(mlir::RankedTensorType type, mlir::AffineMap layout);

/// Whether the elements of `type` are in memory in the order of `layout` (null: row-major). Dimensions of size 1 may be
/// anywhere, so an image with one channel is both NCHW and NHWC.
bool liesAs(mlir::RankedTensorType type, mlir::AffineMap layout);

/// Channels last: (n, c, h, w) -> (n, h, w, c).
mlir::AffineMap getNhwc(mlir::MLIRContext *context);

} // namespace sluice::ir
