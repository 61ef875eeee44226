// Shared by attention and its gradients: tasks, tiles, walks over blocks of steps, scores and masks.
#pragma once

#include "backends/cpu/compiler/attention/Attention.h"
#include "backends/cpu/compiler/attention/LaneTile.h"
#include "backends/cpu/compiler/product/tile/TileChoice.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/Support/MathExtras.h"

namespace sluice::cpu {

/// A task's tile and its position.
struct TaskTile {
  StageFunction &stage;
  LaneTile tile;
  mlir::Value batch, head; // of the side on the lanes
  mlir::Value first;       // item
};

/// The base of the emitters of the forward pass and the gradients. `Sums` are the vectors of one row of a tile.
class AttentionEmitter {
public:
  AttentionEmitter(const StageModule &module, llvm::StringRef name, mlir::Location loc, const Attention &op,
                   const Target &target)
      : module(module), name(name), loc(loc), op(op), lanes(target.lanes(op.element.getIntOrFloatBitWidth())),
        vector(mlir::VectorType::get({lanes}, op.element)), vectorsOfTile(target.numVectorRegisters >= 32 ? 4 : 2),
        target(target) {}
  virtual ~AttentionEmitter() = default;

  Stage emit();

protected:
  virtual bool itemsAreQueries() const = 0;
  virtual void emitTile(mlir::OpBuilder &b, TaskTile &task) = 0;

  int64_t items() const { return itemsAreQueries() ? op.queries : op.keys; }
  int64_t steps() const { return itemsAreQueries() ? op.keys : op.queries; }
  int64_t heads() const { return itemsAreQueries() ? op.heads : op.headsOfKeys; }
  int64_t group() const { return op.heads / op.headsOfKeys; }

  // Memory.
  mlir::Value onStack(StageFunction &stage, int64_t rows) { return elementsOnStack(stage, rows * width()); }
  mlir::Value elementsOnStack(StageFunction &stage, int64_t elements);
  mlir::Value at(mlir::OpBuilder &b, StageFunction &stage, const Attention::Tensor &tensor, mlir::Value batch,
                 mlir::Value head, mlir::Value item);
  void bringIn(mlir::OpBuilder &b, const LaneTile &items, mlir::Value tile, mlir::Value from, int64_t elements,
               int64_t stride);
  void bringOut(mlir::OpBuilder &b, TaskTile &task, mlir::Value tile, int64_t elements,
                const Attention::Result &result);
  /// The address of the tile's first item in a result.
  mlir::Value resultAt(mlir::OpBuilder &b, TaskTile &task, const Attention::Result &result);
  /// Stores a vector of elements, rounded to the type of the result.
  void storeElements(mlir::OpBuilder &b, mlir::Value elements, mlir::Value base, mlir::Value offset,
                     const Attention::Result &result);
  mlir::Value loadMask(mlir::OpBuilder &b, mlir::Value address, int64_t count, int64_t length);
  mlir::Value maskAt(mlir::OpBuilder &b, TaskTile &task, mlir::Value headOfQueries, mlir::Value step);
  int64_t maskOfItems() const { return op.mask.strides[itemsAreQueries() ? 2 : 3]; }
  int64_t maskOfSteps() const { return op.mask.strides[itemsAreQueries() ? 3 : 2]; }

  // Blocks of steps.
  using Block = llvm::function_ref<void(mlir::OpBuilder &b, mlir::Value first, int64_t steps, Sums &state)>;
  Sums forEachBlock(mlir::OpBuilder &b, TaskTile &task, Sums state, Block body);

  /// scores [steps][lanes] = `finish` of the scaled and masked products of each step's vector with `items`, the vectors
  /// of the tile. `a` is the first step's vector, and vectors are `stride` elements apart.
  using Finish = llvm::function_ref<Sums(mlir::OpBuilder &b, mlir::Value row, Sums scores)>;
  void score(mlir::OpBuilder &b, TaskTile &task, mlir::Value headOfQueries, mlir::Value firstStep, int64_t steps,
             mlir::Value a, int64_t stride, mlir::Value items, mlir::Value scores, Finish finish);
  /// sums [elements][lanes] = begin(sums) plus, over the steps, their elements times a row of `from`.
  void accumulate(mlir::OpBuilder &b, const LaneTile &tile, mlir::Value a, int64_t stride, mlir::Value from,
                  int64_t steps, mlir::Value sums, int64_t elements,
                  llvm::function_ref<Sums(mlir::OpBuilder &, Sums)> begin = nullptr);
  int64_t width() const { return vectorsOfTile * lanes; }
  int64_t rowsAtOnce(const LaneTile &tile) const { return maxTileRows(tile.numVectors(), target); }

  // Arithmetic.
  template <typename Op> Sums each(mlir::OpBuilder &b, const Sums &x, const Sums &y) {
    Sums result;
    for (auto [one, other] : llvm::zip_equal(x, y))
      result.push_back(b.create<Op>(loc, one, other));
    return result;
  }
  template <typename Op> Sums each(mlir::OpBuilder &b, const Sums &x) {
    return Sums(llvm::map_range(x, [&](mlir::Value one) -> mlir::Value { return b.create<Op>(loc, one); }));
  }
  Sums select(mlir::OpBuilder &b, mlir::arith::CmpFPredicate predicate, const Sums &x, const Sums &y, const Sums &then,
              const Sums &otherwise);
  Sums larger(mlir::OpBuilder &b, const Sums &x, const Sums &y);
  Sums broadcast(mlir::OpBuilder &b, const LaneTile &tile, mlir::Value scalar);
  Sums scaled(mlir::OpBuilder &b, const LaneTile &tile, const Sums &x);
  void scaleRows(mlir::OpBuilder &b, const LaneTile &tile, mlir::Value rows, int64_t count, const Sums &by);
  /// Logarithms of sums, for subtraction from scores: +inf for an empty sum, so that its probabilities are 0.
  Sums subtrahend(mlir::OpBuilder &b, const LaneTile &tile, const Sums &logsumexp);

  StageModule module;
  std::string name;
  mlir::Location loc;
  const Attention &op;
  int64_t lanes;
  mlir::VectorType vector;

private:
  Sums masked(mlir::OpBuilder &b, TaskTile &task, mlir::Value headOfQueries, mlir::Value step, mlir::Value row,
              Sums scores);
  Sums hideLater(mlir::OpBuilder &b, TaskTile &task, mlir::Value step, Sums scores);
  bool maskEndsSteps() const;
  mlir::Value endOfAttended(mlir::OpBuilder &b, TaskTile &task);
  bool transposesMask() const { return op.mask.stored && maskOfItems() > 1; }
  void emitTask(StageFunction &stage, mlir::OpBuilder &b, mlir::Value task);
  void emitTiles(StageFunction &stage, mlir::OpBuilder &b, mlir::Value batch, mlir::Value head, mlir::Value number);

  int64_t tiles() const { return llvm::divideCeil(items(), width()); }

  int64_t vectorsOfTile;
  const Target &target;
  Stage result;
  mlir::Value maskTile; // the transposed mask of a block, on the stack: [block][lanes]
};

} // namespace sluice::cpu
