#include "backends/cpu/compiler/attention/AttentionEmitter.h"

#include "backends/cpu/compiler/machine/VectorAccess.h"
#include "backends/cpu/compiler/product/tile/IndexMath.h"

#include "mlir/Dialect/Math/IR/Math.h"

namespace sluice::cpu {

using namespace mlir;

namespace {

class ForwardEmitter : public AttentionEmitter {
public:
  using AttentionEmitter::AttentionEmitter;

private:
  bool itemsAreQueries() const final { return true; }
  void emitTile(OpBuilder &b, TaskTile &task) final;
  void emitBlock(OpBuilder &b, TaskTile &task, Value headOfKeys, Value first, int64_t count, Sums &largest,
                 Sums &total);
  void finish(OpBuilder &b, TaskTile &task, const Sums &largest, const Sums &total);

  Value queries, scores, values; // [depth], [block], [valueDepth] times the lanes
};

} // namespace

void ForwardEmitter::emitTile(OpBuilder &b, TaskTile &task) {
  if (!queries) {
    queries = onStack(task.stage, op.depth);
    scores = onStack(task.stage, op.block);
    values = onStack(task.stage, op.valueDepth);
  }
  bringIn(b, task.tile, queries, at(b, task.stage, op.q, task.batch, task.head, task.first), op.depth, op.q.item);
  task.tile.fill(b, values, op.valueDepth, 0);
  Value headOfKeys = IndexMath{b, loc}.div(task.head, group());
  Sums state = task.tile.splat(b, -INFINITY);
  state.append(task.tile.splat(b, 0));
  size_t half = size_t(task.tile.numVectors());
  state = forEachBlock(b, task, state, [&](OpBuilder &inner, Value first, int64_t count, Sums &carried) {
    Sums largest(ArrayRef(carried).take_front(half)), total(ArrayRef(carried).drop_front(half));
    emitBlock(inner, task, headOfKeys, first, count, largest, total);
    carried = largest;
    carried.append(total);
  });
  finish(b, task, Sums(ArrayRef(state).take_front(half)), Sums(ArrayRef(state).drop_front(half)));
}

// The maximum of a query without keys so far is -inf. Its scores are then shifted by 0, because -inf - -inf is NaN.
void ForwardEmitter::emitBlock(OpBuilder &b, TaskTile &task, Value headOfKeys, Value first, int64_t count,
                               Sums &largest, Sums &total) {
  const LaneTile &tile = task.tile;
  score(b, task, task.head, first, count, at(b, task.stage, op.k, task.batch, headOfKeys, first), op.k.item, queries,
        scores, [](OpBuilder &, Value, Sums row) { return row; });
  Value zero = constantI64(b, loc, 0), end = constantI64(b, loc, count);
  Sums before = largest;
  largest = accumulateOver(b, loc, zero, end, 1, largest, [&](OpBuilder &inner, Value row, Sums &most) {
    most = larger(inner, tile.load(inner, scores, row), most);
  });
  Sums none = tile.splat(b, -INFINITY);
  Sums shift = select(b, arith::CmpFPredicate::OEQ, largest, none, tile.splat(b, 0), largest);
  Sums kept = each<math::ExpOp>(b, each<arith::SubFOp>(b, before, shift));
  total = accumulateOver(
      b, loc, zero, end, 1, each<arith::MulFOp>(b, total, kept), [&](OpBuilder &inner, Value row, Sums &sum) {
        Sums p = each<math::ExpOp>(inner, each<arith::SubFOp>(inner, tile.load(inner, scores, row), shift));
        tile.store(inner, p, scores, row);
        sum = each<arith::AddFOp>(inner, sum, p);
      });
  accumulate(b, tile, at(b, task.stage, op.v, task.batch, headOfKeys, first), op.v.item, scores, count, values,
             op.valueDepth, [&](OpBuilder &inner, Sums sums) { return each<arith::MulFOp>(inner, sums, kept); });
}

void ForwardEmitter::finish(OpBuilder &b, TaskTile &task, const Sums &largest, const Sums &total) {
  const LaneTile &tile = task.tile;
  Sums zero = tile.splat(b, 0), inverse = each<arith::DivFOp>(b, tile.splat(b, 1), total);
  scaleRows(b, tile, values, op.valueDepth, select(b, arith::CmpFPredicate::OEQ, total, zero, zero, inverse));
  bringOut(b, task, values, op.valueDepth, op.y);
  if (op.logsumexpResult.stored)
    tile.storeItems(b, each<arith::AddFOp>(b, largest, each<math::LogOp>(b, total)),
                    at(b, task.stage, op.logsumexpResult.tensor, task.batch, task.head, task.first));
}

/// Whether the lanes can be keys: there is one query per head, attention is not causal, and the mask is contiguous or
/// constant along the keys.
static bool isOfOneQuery(const Attention &attention) {
  return attention.queries == 1 && !attention.causal && (!attention.mask.stored || attention.mask.strides[3] <= 1);
}

Stage emitAttention(const StageModule &module, llvm::StringRef name, Location loc, const Attention &attention,
                    const Target &target) {
  if (isOfOneQuery(attention))
    return emitOneQueryAttention(module, name, loc, attention, target);
  return ForwardEmitter(module, name, loc, attention, target).emit();
}

} // namespace sluice::cpu
