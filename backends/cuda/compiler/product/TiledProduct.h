// What a product's kernel is written from: rows, columns and terms as one number each, where elements of the operands lie
// for these, and how the result is cut into tiles and the sums into chunks.
//
// Values depend on the op, its shape, layouts and the capacity: terms are added in the order of memory, in chains of `kChain`
// and chains in their order, whatever the tiles are, and the chunks of a sum are those of its shape. Tensor cores add as many
// at once as a fragment has, in an order that is the architecture's own, and these one behind the other.
#pragma once

#include "backends/cuda/compiler/kernels/GridKernel.h"
#include "backends/loops/Product.h"
#include "ir/Types.h"
#include <optional>

namespace sluice::cuda {

/// A block's threads.
inline constexpr int64_t kThreads = 256;
/// Of a copy that goes on beside the thread that began it, at least.
inline constexpr int64_t kBytesOfCopy = 4;
/// Terms that are added in one chain, before their sum is added to that of those before.
inline constexpr int64_t kChain = 256;

inline mlir::RankedTensorType tensorTypeOf(mlir::Value value) {
  return mlir::cast<mlir::RankedTensorType>(value.getType());
}

/// The dimensions of one role, flattened: rows of the call outermost.
struct Flat {
  llvm::SmallVector<loops::Product::Dim> dims;
  int64_t inner = 1; ///< elements, of each row where there are rows
  bool hasRows = false;

  int64_t atCapacity() const { return hasRows ? inner * dims.front().size : inner; }
  /// How many there are, as text.
  std::string count() const;
  /// Sets what stands for each dimension's variable where this one's number is `place`.
  void take(mlir::AffineExpr place, llvm::MutableArrayRef<mlir::AffineExpr> replacements) const;
};

/// Rows or columns of a tile, and which of them a thread has: `perThread` of them in groups of `width` that lie side by
/// side, each group `stride` behind the one before.
struct TileSide {
  Flat flat;
  int64_t tile = 0, perThread = 1, width = 1, stride = 0;

  int64_t tiles() const { return (flat.atCapacity() + tile - 1) / tile; }
};

/// The two parts of an index: of a row or column (and the batch), and of the place in the sum.
struct Parts {
  mlir::AffineExpr side, depth;
};

/// From 0 on, and up to `most` if there is a most.
struct Bounded {
  Parts index;
  std::optional<int64_t> most;
};

struct TileOperand {
  const char *name; ///< of what is its own in the text
  mlir::Value memory;
  Parts offset;
  llvm::SmallVector<Bounded> bounded; ///< where it has an element, besides what the sum's place says alone
  bool alongSide;                     ///< neighbouring rows or columns are neighbours in memory
  int64_t packed = 1;                 ///< neighbours that one load takes
};

/// What multiplies terms.
enum class Cores {
  Scalar, ///< one fused multiply-add a term
  Tf32,   ///< tensor cores, of f32 whose operands are rounded to 11 bits
  Halves, ///< tensor cores, of f16 or bf16: each product is exact, and added in f32
};

struct TiledProduct {
  loops::Product product;
  mlir::Operation *op;
  int64_t capacity;
  mlir::RankedTensorType type;
  Cores cores;
  std::string scalar; ///< "float": of sums
  int64_t scalarBytes;
  std::string term; ///< as tiles hold operands: "float", "BF16"
  int64_t termBytes;
  int64_t depth; ///< terms of the sum in the tiles that lie in shared memory
  TileSide m, n;
  Flat batch, k;
  TileOperand operands[2];
  mlir::AffineExpr resultOffset;
  llvm::SmallVector<mlir::AffineExpr> always; ///< conditions of the sum's place alone
  bool acrossM = false;     ///< neighbours of the result's memory are neighbours in M, and N has dimensions
  int64_t termsOfChunk = 0; ///< 0: sums are in one piece
  int64_t maxChunks = 1;
  int64_t partsOfRow = 1; ///< chunks of each row of the call, where sums are over these; 1: a chunk has whole ones

  /// Whether sums, or chunks of them, begin with a step of their own; and whether they end with one, too.
  bool beginsWithStep() const { return termsOfChunk % depth == 0; }
  bool hasWholeSteps() const { return beginsWithStep() && k.inner % depth == 0; }
  /// Of a chunk of whole rows, or one of which it has a part.
  int64_t rowsOfChunk() const { return std::max<int64_t>(1, termsOfChunk / k.inner); }

  TiledProduct(const loops::Product &product, mlir::Operation *op, int64_t capacity, Cores cores);
  /// None if `op` is no product, or if its tiles cannot be found: where an element of either operand lies, and whether a
  /// term counts, must be a sum of what the row or column says and of what the place in the sum says. Operands are read through
  /// `moves`, as loops::placeInMemory says.
  static std::optional<TiledProduct> of(mlir::Operation *op, int64_t capacity, const GridOptions &options,
                                        llvm::ArrayRef<mlir::Operation *> moves = {});

  /// The share of the tiles' elements that are the result's.
  double filledTiles() const;
  /// The type in which terms are added.
  mlir::Type sum() const { return ir::getAccumulator(type.getElementType()); }
  /// Elements of the result's buffer.
  int64_t elements() const;
  /// Whether 32 bits hold the number of any row, column, place in the sum or block, those of whole tiles included.
  bool hasShortNumbers() const;
  /// Of such numbers, as text.
  const char *numberType() const { return hasShortNumbers() ? "int" : "Index"; }
  /// Of which the registers hold all that they need: two where a thread has few sums.
  int64_t blocksOfMultiprocessor() const;
  /// Whether sums have more terms than a chain.
  bool hasChains() const;
  bool onTensorCores() const { return cores != Cores::Scalar; }
  /// Whether tiles are copied several steps ahead, beside all that threads do: each load takes enough for such a copy, and
  /// nothing is to be done to it.
  bool isCopiedAhead() const {
    return cores == Cores::Halves && llvm::all_of(operands, [&](const TileOperand &operand) {
             return operand.packed * termBytes >= kBytesOfCopy;
           });
  }
  /// Whether a tile in shared memory is rows of neighbours in the sum, not of neighbours on its side: matrices of halves are
  /// loaded either way, so they lie as in memory.
  bool liesBySide(const TileOperand &operand) const { return cores == Cores::Halves && !operand.alongSide; }
  const TileSide &sideOf(const TileOperand &operand) const { return &operand == &operands[0] ? m : n; }
};

} // namespace sluice::cuda
