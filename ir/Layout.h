// Physical layouts: an affine map from logical indices to physical ones, by floordiv and mod of single dimensions.
#pragma once

#include "ir/Dialect.h"
#include "mlir/IR/AffineMap.h"

namespace sluice::ir {

/// One physical dimension: a logical dimension whole, its tile number, or its place in the tile.
struct PhysicalDim {
  enum Kind { Whole, Div, Mod } kind; // numbered as sluice_layout_part
  unsigned logical;
  int64_t tile; // of Div and Mod; 0 if whole
};

/// Whether two physical dimensions, one inside of the other, are tiles of one dimension that follow each other, so that its
/// elements lie as if it were whole.
bool areJoinedTiles(const PhysicalDim &outer, const PhysicalDim &inner);

/// The layout's dimensions, outermost first (row-major if the type has no layout); fails on maps of another form.
mlir::FailureOr<llvm::SmallVector<PhysicalDim>> getPhysicalDims(mlir::RankedTensorType type);

/// Whether the layout, if there is one, only orders dimensions, and cuts none into tiles.
bool isUncut(mlir::RankedTensorType type);

/// Whether values of these types have elements at the same indices, in the same places.
bool haveOneSpace(mlir::RankedTensorType a, mlir::RankedTensorType b);

/// Sizes of the physical dimensions with `?` = capacity; tiles are rounded up.
llvm::SmallVector<int64_t> getPhysicalShape(mlir::RankedTensorType type, int64_t capacity);

/// Elements from one to the next along each logical dimension, of a layout that cuts none into tiles, with `?` = capacity.
llvm::SmallVector<int64_t> getStrides(mlir::RankedTensorType type, int64_t capacity);

/// Bytes of the buffer that holds a value of this type.
int64_t getBufferBytes(mlir::RankedTensorType type, int64_t capacity);

/// Bytes of one element in memory, as the table of dtypes has it.
int64_t getElementBytes(mlir::Type element);

/// Calls `visit` with the logical index of every element that a value has in a call with `rows` rows, and with the
/// element's place in the buffer.
void forEachElement(mlir::RankedTensorType type, int64_t rows, int64_t capacity,
                    llvm::function_ref<void(llvm::ArrayRef<int64_t> index, int64_t place)> visit);

/// Bytes of the elements alone, without padding: those that are always there, and those of each row.
struct LogicalBytes {
  int64_t fixed = 0, perRow = 0;
};
LogicalBytes getLogicalBytes(mlir::RankedTensorType type);

/// `type` with this layout (identity: none).
mlir::RankedTensorType withLayout(mlir::RankedTensorType type, mlir::AffineMap layout);

/// Whether the elements of `type` lie in memory as they would in `layout` (null: row-major): dimensions of size 1 may
/// stand anywhere, so an image of one channel is NCHW and NHWC at once.
bool liesAs(mlir::RankedTensorType type, mlir::AffineMap layout);

/// Channels last: (n, c, h, w) -> (n, h, w, c).
mlir::AffineMap getNhwc(mlir::MLIRContext *context);

} // namespace sluice::ir
