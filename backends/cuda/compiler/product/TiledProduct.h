// The description of a product's kernel: flat numbers for rows, columns and terms, the addresses of the operands'
// elements as functions of them, and how the result is split into tiles and the sums into chunks.
//
// Values depend only on the op, its shape, layouts and the capacity. Terms are added in memory order, in chains of
// `kChain` terms, and the sums of chains are added in order. Tiles do not affect this order. The chunks of a sum follow
// from its shape. Tensor cores add all terms of a fragment at once, in an order that depends on the architecture, and
// fragments one after another.
#pragma once

#include "backends/cuda/compiler/kernels/GridKernel.h"
#include "backends/loops/Product.h"
#include "ir/Types.h"
#include <optional>

namespace sluice::cuda {

/// A block's threads.
inline constexpr int64_t kThreads = 256;
/// Minimum bytes of an asynchronous copy.
inline constexpr int64_t kBytesOfCopy = 4;
/// Terms that are added in one chain, before their sum is added to the sum of the previous chains.
inline constexpr int64_t kChain = 256;

inline mlir::RankedTensorType tensorTypeOf(mlir::Value value) {
  return mlir::cast<mlir::RankedTensorType>(value.getType());
}

/// The dimensions of one role, flattened: rows of the call outermost.
struct Flat {
  llvm::SmallVector<loops::Product::Dim> dims;
  int64_t inner = 1; ///< elements; if `hasRows`, per row of the call
  bool hasRows = false;

  int64_t atCapacity() const { return hasRows ? inner * dims.front().size : inner; }
  /// The size as source.
  std::string count() const;
  /// Sets the expression of each dimension's variable for this flattened index `place`.
  void take(mlir::AffineExpr place, llvm::MutableArrayRef<mlir::AffineExpr> replacements) const;
};

/// Rows or columns of a tile, and those of a thread: `perThread` of them in groups of `width` adjacent ones, each group
/// `stride` after the previous one.
struct TileSide {
  Flat flat;
  int64_t tile = 0, perThread = 1, width = 1, stride = 0;

  int64_t tiles() const { return (flat.atCapacity() + tile - 1) / tile; }
};

/// The two parts of an index: of a row or column (and the batch), and of the summed index.
struct Parts {
  mlir::AffineExpr side, depth;
};

/// A condition: the index is at least 0 and, if `most` is set, at most `most`.
struct Bounded {
  Parts index;
  std::optional<int64_t> most;
};

struct TileOperand {
  const char *name; ///< prefix of its names in the source
  mlir::Value memory;
  Parts offset;
  llvm::SmallVector<Bounded> bounded; ///< conditions under which an element exists, except `TiledProduct::always`
  bool alongSide;                     ///< adjacent rows or columns are contiguous in memory
  int64_t packed = 1;                 ///< contiguous elements per load
};

/// How terms are multiplied.
enum class Cores {
  Scalar, ///< one fused multiply-add per term
  Tf32,   ///< tensor cores, of f32 whose operands are rounded to 11 bits
  Halves, ///< tensor cores, of f16 or bf16: each product is exact, and added in f32
};

struct TiledProduct {
  loops::Product product;
  mlir::Operation *op;
  int64_t capacity;
  mlir::RankedTensorType type;
  Cores cores;
  std::string scalar; ///< type of sums, as source: "float"
  int64_t scalarBytes;
  std::string term; ///< element type of tiles: "float", "BF16"
  int64_t termBytes;
  int64_t depth; ///< terms per step, in shared memory
  TileSide m, n;
  Flat batch, k;
  TileOperand operands[2];
  mlir::AffineExpr resultOffset;
  llvm::SmallVector<mlir::AffineExpr> always; ///< conditions of the summed index alone
  bool acrossM = false;     ///< elements that are adjacent in M are contiguous in the result, and N has dimensions
  int64_t termsOfChunk = 0; ///< 0: sums are not split into chunks
  int64_t maxChunks = 1;
  int64_t partsOfRow = 1; ///< chunks per row of the call if sums are over rows; 1: a chunk has whole rows

  /// Whether sums, or their chunks, begin at a step boundary; and whether they also end at one.
  bool beginsWithStep() const { return termsOfChunk % depth == 0; }
  bool hasWholeSteps() const { return beginsWithStep() && k.inner % depth == 0; }
  /// The number of whole rows in a chunk; 1 if a chunk is a part of a row.
  int64_t rowsOfChunk() const { return std::max<int64_t>(1, termsOfChunk / k.inner); }

  TiledProduct(const loops::Product &product, mlir::Operation *op, int64_t capacity, Cores cores);
  /// Returns none if `op` is no product, or if its tiles cannot be addressed. The address of an operand's element, and
  /// whether a term exists, must be a sum of a part that depends on the row or column and a part that depends on the
  /// summed index. Operands are read through `moves`, as defined by loops::placeInMemory.
  static std::optional<TiledProduct> of(mlir::Operation *op, int64_t capacity, const GridOptions &options,
                                        llvm::ArrayRef<mlir::Operation *> moves = {});

  /// The share of the tiles' elements that are elements of the result.
  double filledTiles() const;
  /// The type in which terms are added.
  mlir::Type sum() const { return ir::getAccumulator(type.getElementType()); }
  /// Elements of the result's buffer.
  int64_t elements() const;
  /// Whether 32 bits hold the index of every row, column, summed index and block, including whole tiles.
  bool hasShortNumbers() const;
  /// The type of such numbers, as source.
  const char *numberType() const { return hasShortNumbers() ? "int" : "Index"; }
  /// Blocks per multiprocessor whose registers fit without spilling: two if a thread has few sums.
  int64_t blocksOfMultiprocessor() const;
  /// Whether sums have more terms than one chain.
  bool hasChains() const;
  bool onTensorCores() const { return cores != Cores::Scalar; }
  /// Whether tiles are copied asynchronously several steps ahead: each load is large enough for an asynchronous copy,
  /// and elements need no conversion.
  bool isCopiedAhead() const {
    return cores == Cores::Halves && llvm::all_of(operands, [&](const TileOperand &operand) {
             return operand.packed * termBytes >= kBytesOfCopy;
           });
  }
  /// Whether terms of one row or column are contiguous in the tile in shared memory; otherwise, adjacent rows or
  /// columns are. Tensor cores load halves in either order, so the tile keeps the order of the operand in memory.
  bool liesBySide(const TileOperand &operand) const { return cores == Cores::Halves && !operand.alongSide; }
  const TileSide &sideOf(const TileOperand &operand) const { return &operand == &operands[0] ? m : n; }
};

} // namespace sluice::cuda
