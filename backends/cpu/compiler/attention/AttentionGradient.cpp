// The gradients of attention: of queries, and of keys and values.
#include "backends/cpu/compiler/attention/AttentionEmitter.h"

#include "backends/cpu/compiler/machine/VectorAccess.h"
#include "backends/cpu/compiler/product/tile/IndexMath.h"

#include "mlir/Dialect/Math/IR/Math.h"

namespace sluice::cpu {

using namespace mlir;

//===- the gradient of queries ------------------------------------------------------------------------------------===//

namespace {

class QueryGradientEmitter : public AttentionEmitter {
public:
  using AttentionEmitter::AttentionEmitter;

private:
  bool itemsAreQueries() const final { return true; }
  void emitTile(OpBuilder &b, TaskTile &task) final;

  Value queries, dY, scores, sums; // [depth], [valueDepth], [block], [depth] times the lanes
};

} // namespace

void QueryGradientEmitter::emitTile(OpBuilder &b, TaskTile &task) {
  if (!queries) {
    queries = onStack(task.stage, op.depth);
    dY = onStack(task.stage, op.valueDepth);
    scores = onStack(task.stage, op.block);
    sums = onStack(task.stage, op.depth);
  }
  const LaneTile &tile = task.tile;
  auto ofTask = [&](const Attention::Tensor &tensor) {
    return at(b, task.stage, tensor, task.batch, task.head, task.first);
  };
  bringIn(b, task.tile, queries, ofTask(op.q), op.depth, op.q.item);
  bringIn(b, task.tile, dY, ofTask(op.dY), op.valueDepth, op.dY.item);
  tile.fill(b, sums, op.depth, 0);
  Sums logarithms = subtrahend(b, tile, tile.loadItems(b, ofTask(op.logsumexp)));
  Sums delta = tile.loadItems(b, ofTask(op.delta));
  Value headOfKeys = IndexMath{b, loc}.div(task.head, group());
  forEachBlock(b, task, {}, [&](OpBuilder &inner, Value first, int64_t count, Sums &) {
    Value k = at(inner, task.stage, op.k, task.batch, headOfKeys, first),
          v = at(inner, task.stage, op.v, task.batch, headOfKeys, first);
    score(inner, task, task.head, first, count, k, op.k.item, queries, scores,
          [&](OpBuilder &body, Value, const Sums &row) {
            return each<math::ExpOp>(body, each<arith::SubFOp>(body, row, logarithms));
          });
    tile.multiply(
        inner, {v, op.v.item, 1, dY, count, op.valueDepth}, rowsAtOnce(tile),
        [&](OpBuilder &body, Value) { return tile.splat(body, 0); },
        [&](OpBuilder &body, Value row, const Sums &dP) {
          Sums p = tile.load(body, scores, row);
          tile.store(body, each<arith::MulFOp>(body, p, each<arith::SubFOp>(body, dP, delta)), scores, row);
        });
    accumulate(inner, tile, k, op.k.item, scores, count, sums, op.depth);
  });
  scaleRows(b, tile, sums, op.depth, tile.splat(b, op.scale));
  bringOut(b, task, sums, op.depth, op.dQ);
}

//===- the gradients of keys and values ---------------------------------------------------------------------------===//

namespace {

class KeyValueGradientEmitter : public AttentionEmitter {
public:
  using AttentionEmitter::AttentionEmitter;

private:
  bool itemsAreQueries() const final { return false; }
  void emitTile(OpBuilder &b, TaskTile &task) final;
  void emitBlock(OpBuilder &b, TaskTile &task, Value head, Value first, int64_t count);

  Value keys, values, scores, sumsOfKeys, sumsOfValues; // [depth], [valueDepth], [block], ... times the lanes
};

} // namespace

void KeyValueGradientEmitter::emitTile(OpBuilder &b, TaskTile &task) {
  if (!keys) {
    keys = onStack(task.stage, op.depth);
    values = onStack(task.stage, op.valueDepth);
    scores = onStack(task.stage, op.block);
    sumsOfKeys = onStack(task.stage, op.depth);
    sumsOfValues = onStack(task.stage, op.valueDepth);
  }
  const LaneTile &tile = task.tile;
  auto ofTask = [&](const Attention::Tensor &tensor) {
    return at(b, task.stage, tensor, task.batch, task.head, task.first);
  };
  bringIn(b, task.tile, keys, ofTask(op.k), op.depth, op.k.item);
  bringIn(b, task.tile, values, ofTask(op.v), op.valueDepth, op.v.item);
  tile.fill(b, sumsOfKeys, op.depth, 0);
  tile.fill(b, sumsOfValues, op.valueDepth, 0);
  loopOver(b, loc, constantI64(b, loc, 0), constantI64(b, loc, group()), 1, [&](OpBuilder &inner, Value number) {
    IndexMath math{inner, loc};
    Value head = math.add(math.mul(task.head, group()), number);
    forEachBlock(inner, task, {}, [&](OpBuilder &body, Value first, int64_t count, Sums &) {
      emitBlock(body, task, head, first, count);
    });
  });
  scaleRows(b, tile, sumsOfKeys, op.depth, tile.splat(b, op.scale));
  bringOut(b, task, sumsOfKeys, op.depth, op.dK);
  bringOut(b, task, sumsOfValues, op.valueDepth, op.dV);
}

void KeyValueGradientEmitter::emitBlock(OpBuilder &b, TaskTile &task, Value head, Value first, int64_t count) {
  const LaneTile &tile = task.tile;
  auto ofBlock = [&](const Attention::Tensor &tensor) { return at(b, task.stage, tensor, task.batch, head, first); };
  Value q = ofBlock(op.q), dY = ofBlock(op.dY), logsumexp = ofBlock(op.logsumexp), delta = ofBlock(op.delta);
  auto ofStep = [&](OpBuilder &inner, Value items, Value row) {
    return Sums(tile.numVectors(),
                loadBroadcast(inner, loc, vector, elementAddress(inner, loc, op.element, items, row)));
  };
  score(b, task, head, first, count, q, op.q.item, keys, scores, [&](OpBuilder &inner, Value row, const Sums &sums) {
    Sums logarithms = subtrahend(inner, tile, ofStep(inner, logsumexp, row));
    return each<math::ExpOp>(inner, each<arith::SubFOp>(inner, sums, logarithms));
  });
  accumulate(b, tile, dY, op.dY.item, scores, count, sumsOfValues, op.valueDepth);
  tile.multiply(
      b, {dY, op.dY.item, 1, values, count, op.valueDepth}, rowsAtOnce(tile),
      [&](OpBuilder &inner, Value) { return tile.splat(inner, 0); },
      [&](OpBuilder &inner, Value row, const Sums &dP) {
        Sums p = tile.load(inner, scores, row), ofRow = ofStep(inner, delta, row);
        tile.store(inner, each<arith::MulFOp>(inner, p, each<arith::SubFOp>(inner, dP, ofRow)), scores, row);
      });
  accumulate(b, tile, q, op.q.item, scores, count, sumsOfKeys, op.depth);
}

Stage emitAttentionQueryGradient(const StageModule &module, llvm::StringRef name, Location loc,
                                 const Attention &attention, const Target &target) {
  return QueryGradientEmitter(module, name, loc, attention, target).emit();
}

Stage emitAttentionKeyValueGradient(const StageModule &module, llvm::StringRef name, Location loc,
                                    const Attention &attention, const Target &target) {
  return KeyValueGradientEmitter(module, name, loc, attention, target).emit();
}

} // namespace sluice::cpu
