// Attention of one query per head, as in text generation, where each call has one new token. A tile of queries would
// leave all lanes but one idle. So the lanes are keys in products with the query, and elements in sums of values.
#include "backends/cpu/compiler/attention/AttentionEmitter.h"

#include "backends/cpu/compiler/machine/Halves.h"
#include "backends/cpu/compiler/machine/VectorAccess.h"
#include "backends/cpu/compiler/product/tile/IndexMath.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <cmath>

namespace sluice::cpu {

using namespace mlir;

namespace {

class OneQueryEmitter : public AttentionEmitter {
public:
  using AttentionEmitter::AttentionEmitter;

private:
  /// The softmax over the keys so far.
  struct State {
    Value largest; // the largest score, on all lanes
    Value total;   // the sum of the weights, of the keys on each lane
  };

  bool itemsAreQueries() const final { return true; }
  void emitTile(OpBuilder &b, TaskTile &task) final;
  void emitBlock(OpBuilder &b, TaskTile &task, Value headOfKeys, Value first, int64_t count, State &state);
  void score(OpBuilder &b, TaskTile &task, Value headOfKeys, Value first, Value place, int64_t count);
  Value masked(OpBuilder &b, TaskTile &task, Value step, int64_t count, Value scores);
  Value hideMissing(OpBuilder &b, Value scores, int64_t count);
  Value weigh(OpBuilder &b, int64_t count, State &state);
  void addValues(OpBuilder &b, Value from, int64_t count, Value kept);
  void forEachColumns(llvm::function_ref<void(int64_t first, const Tile &tile)> body);
  void finish(OpBuilder &b, TaskTile &task, const State &state);

  Value splat(OpBuilder &b, double value) { return LaneTile(loc, vector, 1).splat(b, value)[0]; }
  Value onAllLanes(OpBuilder &b, Value scalar) { return b.create<vector::BroadcastOp>(loc, vector, scalar); }
  Value address(OpBuilder &b, Value base, Value offset) { return elementAddress(b, loc, op.element, base, offset); }

  Value transposed; // the elements of some keys: [depth][width]
  Value weights;    // of a block of keys: scores, then e^(score - largest)
  Value sums;       // of weighted values
};

} // namespace

void OneQueryEmitter::emitTile(OpBuilder &b, TaskTile &task) {
  if (!transposed) {
    transposed = onStack(task.stage, op.depth);
    weights = elementsOnStack(task.stage, llvm::alignTo(op.block, lanes));
    sums = elementsOnStack(task.stage, llvm::alignTo(op.valueDepth, lanes));
  }
  Value zero = splat(b, 0);
  forEachColumns([&](int64_t first, const Tile &tile) {
    tile.store(b, tile.zeros(b), elementAddress(b, loc, op.element, sums, first), 0);
  });
  Value headOfKeys = IndexMath{b, loc}.div(task.head, group());
  Sums state = forEachBlock(b, task, {splat(b, -INFINITY), zero},
                            [&](OpBuilder &inner, Value first, int64_t count, Sums &carried) {
                              State its{carried[0], carried[1]};
                              emitBlock(inner, task, headOfKeys, first, count, its);
                              carried = {its.largest, its.total};
                            });
  finish(b, task, {state[0], state[1]});
}

void OneQueryEmitter::emitBlock(OpBuilder &b, TaskTile &task, Value headOfKeys, Value first, int64_t count,
                                State &state) {
  IndexMath math{b, loc};
  int64_t whole = count / width() * width();
  if (whole)
    loopOver(b, loc, math.constant(0), math.constant(whole), width(), [&](OpBuilder &inner, Value place) {
      score(inner, task, headOfKeys, IndexMath{inner, loc}.add(first, place), place, width());
    });
  if (whole != count)
    score(b, task, headOfKeys, math.add(first, whole), math.constant(whole), count - whole);
  Value kept = weigh(b, count, state);
  addValues(b, at(b, task.stage, op.v, task.batch, headOfKeys, first), count, kept);
}

/// Stores the scores of `count` keys from `first` on into `weights` from `place` on. Each score is a sum over the
/// elements in order.
void OneQueryEmitter::score(OpBuilder &b, TaskTile &task, Value headOfKeys, Value first, Value place, int64_t count) {
  LaneTile keys(loc, vector, count);
  Value from = at(b, task.stage, op.k, task.batch, headOfKeys, first);
  bringIn(b, keys, transposed, from, op.depth, op.k.item);
  Value query = at(b, task.stage, op.q, task.batch, task.head, task.first);
  keys.multiply(
      b, {query, op.depth, 1, transposed, 1, op.depth}, 1,
      [&](OpBuilder &inner, Value) { return keys.splat(inner, 0); },
      [&](OpBuilder &inner, Value, Sums scores) {
        scores = scaled(inner, keys, scores);
        for (int64_t v = 0; v < keys.numVectors(); ++v) {
          Value step = IndexMath{inner, loc}.add(first, v * lanes);
          Value score = hideMissing(inner, masked(inner, task, step, keys.itemsOf(v), scores[v]), keys.itemsOf(v));
          storeVector(inner, loc, score, address(inner, weights, IndexMath{inner, loc}.add(place, v * lanes)));
        }
      });
}

Value OneQueryEmitter::masked(OpBuilder &b, TaskTile &task, Value step, int64_t count, Value scores) {
  if (!op.mask.stored)
    return scores;
  bool isConstant = maskOfSteps() == 0;
  Value mask = loadMask(b, maskAt(b, task, task.head, step), isConstant ? 1 : count, isConstant ? 1 : lanes);
  if (isConstant)
    mask = onAllLanes(b, b.create<vector::ExtractOp>(loc, mask, ArrayRef<int64_t>{0}));
  return b.create<arith::AddFOp>(loc, scores, mask);
}

/// Sets the scores of lanes without a key to -inf.
Value OneQueryEmitter::hideMissing(OpBuilder &b, Value scores, int64_t count) {
  if (count == lanes)
    return scores;
  SmallVector<bool> isKey(lanes, false);
  std::fill_n(isKey.begin(), count, true);
  auto type = VectorType::get({lanes}, b.getI1Type());
  Value keys = b.create<arith::ConstantOp>(loc, DenseElementsAttr::get(type, ArrayRef<bool>(isKey)));
  return b.create<arith::SelectOp>(loc, keys, scores, splat(b, -INFINITY));
}

/// Replaces scores by weights. Returns the factor of earlier sums, on all lanes. The largest score is -inf while all
/// keys are masked. The scores are then shifted by 0, as in tiles of queries.
Value OneQueryEmitter::weigh(OpBuilder &b, int64_t count, State &state) {
  IndexMath math{b, loc};
  Value end = math.constant(int64_t(llvm::alignTo(count, lanes)));
  Sums most = accumulateOver(
      b, loc, math.constant(0), end, lanes, {state.largest}, [&](OpBuilder &inner, Value place, Sums &most) {
        most = larger(inner, {loadVector(inner, loc, vector, address(inner, weights, place))}, most);
      });
  Value largest =
      onAllLanes(b, b.create<vector::ReductionOp>(loc, vector::CombiningKind::MAXNUMF, most[0]).getResult());
  Value none = splat(b, -INFINITY);
  Sums shift = select(b, arith::CmpFPredicate::OEQ, {largest}, {none}, {splat(b, 0)}, {largest});
  Value kept = each<math::ExpOp>(b, each<arith::SubFOp>(b, {state.largest}, shift))[0];
  Sums total = accumulateOver(b, loc, math.constant(0), end, lanes, each<arith::MulFOp>(b, {state.total}, {kept}),
                              [&](OpBuilder &inner, Value place, Sums &sum) {
                                Value at = address(inner, weights, place);
                                Sums score{loadVector(inner, loc, vector, at)};
                                Sums p = each<math::ExpOp>(inner, each<arith::SubFOp>(inner, score, shift));
                                storeVector(inner, loc, p[0], at);
                                sum = each<arith::AddFOp>(inner, sum, p);
                              });
  state = {largest, total[0]};
  return kept;
}

/// Calls `body` for each group of elements of a value. A tile keeps one group in registers.
void OneQueryEmitter::forEachColumns(llvm::function_ref<void(int64_t first, const Tile &tile)> body) {
  constexpr int64_t kVectors = 8;
  for (int64_t first = 0; first < op.valueDepth; first += kVectors * lanes)
    body(first, Tile(loc, vector, 1, std::min(kVectors * lanes, op.valueDepth - first), /*wholeVectors=*/false));
}

void OneQueryEmitter::addValues(OpBuilder &b, Value from, int64_t count, Value kept) {
  constexpr int64_t kUnroll = 4;
  forEachColumns([&](int64_t first, const Tile &tile) {
    Value place = elementAddress(b, loc, op.element, sums, first);
    Value values = elementAddress(b, loc, op.element, from, first);
    Sums scaledSums = each<arith::MulFOp>(b, tile.load(b, place, 0), Sums(tile.vectors(), kept));
    Sums after = accumulateOver(
        b, loc, count, kUnroll, scaledSums, [&](OpBuilder &inner, Value key, int64_t plus, Sums &carried) {
          IndexMath math{inner, loc};
          Value weight = elementAddress(inner, loc, op.element, address(inner, weights, key), plus);
          Value row = address(inner, values, math.mul(key, op.v.item));
          tile.multiplyAdd(inner, carried, {weight}, elementAddress(inner, loc, op.element, row, plus * op.v.item));
        });
    tile.store(b, after, place, 0);
  });
}

void OneQueryEmitter::finish(OpBuilder &b, TaskTile &task, const State &state) {
  Value total = onAllLanes(b, b.create<vector::ReductionOp>(loc, vector::CombiningKind::ADD, state.total).getResult());
  Sums zero{splat(b, 0)}, inverse = each<arith::DivFOp>(b, {splat(b, 1)}, {total});
  Sums factor = select(b, arith::CmpFPredicate::OEQ, {total}, zero, zero, inverse);
  if (op.y.stored) {
    Value base = resultAt(b, task, op.y);
    forEachColumns([&](int64_t first, const Tile &tile) {
      Sums values = tile.load(b, elementAddress(b, loc, op.element, sums, first), 0);
      for (int64_t v = 0; v < tile.vectors(); ++v) {
        Value scaledValues = b.create<arith::MulFOp>(loc, values[v], factor[0]);
        storeElements(b, firstLanes(b, loc, scaledValues, tile.lanesOf(v)), base,
                      constantI64(b, loc, first + v * lanes), op.y);
      }
    });
  }
  if (op.logsumexpResult.stored) {
    Value logarithm = b.create<arith::AddFOp>(loc, state.largest, b.create<math::LogOp>(loc, total));
    storeVector(b, loc, firstLanes(b, loc, logarithm, 1),
                at(b, task.stage, op.logsumexpResult.tensor, task.batch, task.head, task.first));
  }
}

Stage emitOneQueryAttention(const StageModule &module, llvm::StringRef name, Location loc, const Attention &attention,
                            const Target &target) {
  return OneQueryEmitter(module, name, loc, attention, target).emit();
}

} // namespace sluice::cpu
