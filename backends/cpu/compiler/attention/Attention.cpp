#include "backends/cpu/compiler/attention/Attention.h"

#include "backends/cpu/compiler/Halves.h"
#include "backends/cpu/compiler/VectorAccess.h"
#include "backends/cpu/compiler/attention/LaneTile.h"
#include "backends/cpu/compiler/contraction/IndexMath.h"
#include "backends/cpu/compiler/contraction/TileChoice.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"

#include <cmath>

namespace sluice::cpu {

using namespace mlir;

namespace {

/// Of a task: its tile, and where it is.
struct TaskTile {
  StageFunction &stage;
  LaneTile tile;
  Value batch, head; // of what is on the lanes
  Value first;       // item
};

/// What forward and the gradients share. Operations on all vectors of a row are those on Sums.
class AttentionEmitter {
public:
  AttentionEmitter(const StageModule &module, llvm::StringRef name, Location loc, const Attention &op,
                   const Target &target)
      : module(module), name(name), loc(loc), op(op), lanes(target.lanes(op.element.getIntOrFloatBitWidth())),
        vector(VectorType::get({lanes}, op.element)), vectorsOfTile(target.numVectorRegisters >= 32 ? 4 : 2),
        target(target) {}
  virtual ~AttentionEmitter() = default;

  Stage emit();

protected:
  virtual bool lanesAreQueries() const = 0;
  virtual void emitTile(OpBuilder &b, TaskTile &task) = 0;

  int64_t items() const { return lanesAreQueries() ? op.queries : op.keys; }
  int64_t steps() const { return lanesAreQueries() ? op.keys : op.queries; }
  int64_t heads() const { return lanesAreQueries() ? op.heads : op.headsOfKeys; }
  int64_t group() const { return op.heads / op.headsOfKeys; }

  // Memory.
  Value onStack(StageFunction &stage, int64_t rows);
  Value at(OpBuilder &b, StageFunction &stage, const Attention::Tensor &tensor, Value batch, Value head, Value item);
  void bringIn(OpBuilder &b, TaskTile &task, Value tile, Value from, int64_t elements, int64_t stride);
  void bringOut(OpBuilder &b, TaskTile &task, Value tile, int64_t elements, const Attention::Result &result);
  Value loadMask(OpBuilder &b, Value address, int64_t count, int64_t length);

  // Blocks of steps.
  using Block = llvm::function_ref<void(OpBuilder &b, Value first, int64_t steps, Sums &state)>;
  Sums forEachBlock(OpBuilder &b, TaskTile &task, Sums state, Block body);

  /// tile [steps][lanes] = what `finish` makes of the scores of each step. `a` is the first step's vector.
  using Finish = llvm::function_ref<Sums(OpBuilder &b, Value row, Sums scores)>;
  void score(OpBuilder &b, TaskTile &task, Value headOfQueries, Value firstStep, int64_t steps, Value a, int64_t stride,
             Value items, Value scores, Finish finish);
  /// sums [elements][lanes] = begin(sums) plus, over the steps, their elements times a row of `from`.
  void accumulate(OpBuilder &b, const LaneTile &tile, Value a, int64_t stride, Value from, int64_t steps, Value sums,
                  int64_t elements, llvm::function_ref<Sums(OpBuilder &, Sums)> begin = nullptr);
  int64_t rowsAtOnce(const LaneTile &tile) const { return maxTileRows(tile.numVectors(), target); }

  // Arithmetic.
  template <typename Op> Sums each(OpBuilder &b, const Sums &x, const Sums &y) {
    Sums result;
    for (auto [one, other] : llvm::zip_equal(x, y))
      result.push_back(b.create<Op>(loc, one, other));
    return result;
  }
  template <typename Op> Sums each(OpBuilder &b, const Sums &x) {
    return Sums(llvm::map_range(x, [&](Value one) -> Value { return b.create<Op>(loc, one); }));
  }
  Sums select(OpBuilder &b, arith::CmpFPredicate predicate, const Sums &x, const Sums &y, const Sums &then,
              const Sums &otherwise);
  Sums larger(OpBuilder &b, const Sums &x, const Sums &y) { return select(b, arith::CmpFPredicate::OGT, x, y, x, y); }
  Sums broadcast(OpBuilder &b, const LaneTile &tile, Value scalar) {
    return Sums(tile.numVectors(), b.create<vector::BroadcastOp>(loc, vector, scalar));
  }
  Sums scaled(OpBuilder &b, const LaneTile &tile, const Sums &x) {
    return op.scale == 1 ? x : each<arith::MulFOp>(b, x, tile.splat(b, op.scale));
  }
  void scaleRows(OpBuilder &b, const LaneTile &tile, Value rows, int64_t count, const Sums &by);
  /// Logarithms of sums, ready to be subtracted: +inf where there is no sum, which leaves no probability.
  Sums subtrahend(OpBuilder &b, const LaneTile &tile, const Sums &logsumexp) {
    Sums none = tile.splat(b, -INFINITY);
    return select(b, arith::CmpFPredicate::OEQ, logsumexp, none, tile.splat(b, INFINITY), logsumexp);
  }

  StageModule module;
  std::string name;
  Location loc;
  const Attention &op;
  int64_t lanes;
  VectorType vector;

private:
  Sums masked(OpBuilder &b, TaskTile &task, Value headOfQueries, Value step, Value row, Sums scores);
  Sums hideLater(OpBuilder &b, TaskTile &task, Value step, Sums scores);
  Value maskAt(OpBuilder &b, TaskTile &task, Value headOfQueries, Value step);
  bool maskEndsSteps() const;
  Value endOfAttended(OpBuilder &b, TaskTile &task);
  int64_t maskOfItems() const { return op.mask.strides[lanesAreQueries() ? 2 : 3]; }
  int64_t maskOfSteps() const { return op.mask.strides[lanesAreQueries() ? 3 : 2]; }
  bool transposesMask() const { return op.mask.stored && maskOfItems() > 1; }
  void emitTask(StageFunction &stage, OpBuilder &b, Value task);
  void emitTiles(StageFunction &stage, OpBuilder &b, Value batch, Value head, Value number);

  int64_t width() const { return vectorsOfTile * lanes; }
  int64_t tiles() const { return llvm::divideCeil(items(), width()); }

  int64_t vectorsOfTile;
  const Target &target;
  Stage result;
  Value maskTile; // where the mask is transposed: [block][lanes]
};

} // namespace

//===- tasks ------------------------------------------------------------------------------------------------------===//

Stage AttentionEmitter::emit() {
  constexpr int64_t kWorthwhile = 1 << 20; // multiply-adds of a task
  int64_t ofRow = width() * steps() * (op.depth + op.valueDepth);
  result = {name, heads() * tiles(), 0};
  if (op.batchIsRows)
    result.rowsPerTask = std::clamp<int64_t>(kWorthwhile / ofRow, 1, std::max<int64_t>(1, op.batch / 32));
  else
    result.tasks *= op.batch;
  StageFunction stage = StageFunction::create(module, name, loc);
  stage.forEachTask([&](OpBuilder &b, Value task) { emitTask(stage, b, task); });
  return result;
}

void AttentionEmitter::emitTask(StageFunction &stage, OpBuilder &b, Value task) {
  IndexMath math{b, loc};
  if (!op.batchIsRows) {
    SmallVector<Value> place = math.delinearize(task, {op.batch, heads(), tiles()});
    return emitTiles(stage, b, place[0], place[1], place[2]);
  }
  SmallVector<Value> place = math.delinearize(math.rem(task, result.tasks), {heads(), tiles()});
  Value first = math.mul(math.div(task, result.tasks), result.rowsPerTask);
  Value last = math.min(math.add(first, result.rowsPerTask), stage.rows);
  loopOver(b, loc, first, last, 1,
           [&](OpBuilder &inner, Value batch) { emitTiles(stage, inner, batch, place[0], place[1]); });
}

void AttentionEmitter::emitTiles(StageFunction &stage, OpBuilder &b, Value batch, Value head, Value number) {
  int64_t whole = items() / width(), rest = items() % width();
  IndexMath math{b, loc};
  auto emitOf = [&](int64_t count) {
    return [this, &stage, batch, head, number, count](OpBuilder &inner) {
      TaskTile task{stage, LaneTile(loc, vector, count), batch, head, IndexMath{inner, loc}.mul(number, width())};
      emitTile(inner, task);
    };
  };
  if (whole && rest)
    ifThenElse(b, loc, math.less(number, math.constant(whole)), emitOf(width()), emitOf(rest));
  else
    emitOf(whole ? width() : rest)(b);
}

Sums AttentionEmitter::forEachBlock(OpBuilder &b, TaskTile &task, Sums state, Block body) {
  IndexMath math{b, loc};
  int64_t whole = steps() / op.block * op.block, rest = steps() - whole;
  Value begin = math.constant(0), end = math.constant(steps());
  if (op.causal && lanesAreQueries()) // no key behind the last query
    end = math.min(end, math.add(task.first, task.tile.width()));
  else if (op.causal) // no query before the first key
    begin = math.roundDown(task.first, op.block);
  if (maskEndsSteps())
    end = math.min(end, endOfAttended(b, task));
  auto walk = [&](Value from, Value to, int64_t count) {
    auto one = [&](OpBuilder &inner, Value first, Sums &carried) { body(inner, first, count, carried); };
    if (!state.empty())
      state = accumulateOver(b, loc, from, to, count, state, one);
    else
      loopOver(b, loc, from, to, count, [&](OpBuilder &inner, Value first) { one(inner, first, state); });
  };
  walk(begin, math.min(end, math.constant(whole)), op.block);
  if (rest)
    walk(math.constant(whole), end, rest);
  return state;
}

//===- memory -----------------------------------------------------------------------------------------------------===//

Value AttentionEmitter::onStack(StageFunction &stage, int64_t rows) {
  constexpr unsigned kAlignment = 64;
  OpBuilder b = OpBuilder::atBlockBegin(&stage.func.getBody().front());
  return b.create<LLVM::AllocaOp>(loc, LLVM::LLVMPointerType::get(b.getContext()), op.element,
                                  constantI64(b, loc, rows * width()), kAlignment);
}

Value AttentionEmitter::at(OpBuilder &b, StageFunction &stage, const Attention::Tensor &tensor, Value batch, Value head,
                           Value item) {
  IndexMath math{b, loc};
  Value offset = math.add(math.mul(batch, tensor.batch), math.mul(head, tensor.head));
  offset = math.add(math.add(offset, math.mul(item, tensor.item)), tensor.place.offset);
  return elementAddress(b, loc, op.element, stage.buffer(tensor.place.buffer), offset);
}

void AttentionEmitter::bringIn(OpBuilder &b, TaskTile &task, Value tile, Value from, int64_t elements, int64_t stride) {
  task.tile.transposeIn(b, tile, elements, stride, [&](OpBuilder &inner, Value offset, int64_t count) {
    return loadFirstLanes(inner, loc, vector, elementAddress(inner, loc, op.element, from, offset), count);
  });
}

void AttentionEmitter::bringOut(OpBuilder &b, TaskTile &task, Value tile, int64_t elements,
                                const Attention::Result &result) {
  if (!result.stored)
    return;
  bool isHalf = result.stored != op.element;
  Type inMemory = result.stored.isBF16() ? b.getI16Type() : result.stored;
  const Attention::Tensor &tensor = result.tensor;
  IndexMath math{b, loc};
  Value offset = math.add(math.mul(task.batch, tensor.batch), math.mul(task.head, tensor.head));
  offset = math.add(math.add(offset, math.mul(task.first, tensor.item)), tensor.place.offset);
  Value base = elementAddress(b, loc, inMemory, task.stage.buffer(tensor.place.buffer), offset);
  task.tile.transposeOut(b, tile, elements, tensor.item, [&](OpBuilder &inner, Value row, Value place) {
    if (isHalf)
      row = narrowToHalf(inner, loc, roundToHalf(inner, loc, row, result.stored), result.stored);
    storeVector(inner, loc, row, elementAddress(inner, loc, inMemory, base, place));
  });
}

//===- masks ------------------------------------------------------------------------------------------------------===//

/// What is added to scores, in a vector of `length`, of which `count` are there.
Value AttentionEmitter::loadMask(OpBuilder &b, Value address, int64_t count, int64_t length) {
  auto type = VectorType::get({length}, op.element);
  Value held = loadFirstLanes(b, loc, VectorType::get({length}, op.mask.stored), address, count);
  if (op.mask.stored == op.element)
    return held;
  auto splat = [&](double value) -> Value {
    auto number = FloatAttr::get(op.element, value);
    return b.create<arith::ConstantOp>(loc, DenseElementsAttr::get(type, Attribute(number)));
  };
  Value zero = b.create<arith::ConstantOp>(loc, b.getZeroAttr(held.getType()));
  Value attends = b.create<arith::CmpIOp>(loc, arith::CmpIPredicate::ne, held, zero);
  return b.create<arith::SelectOp>(loc, attends, splat(0), splat(-INFINITY));
}

/// Of the first item of the tile.
Value AttentionEmitter::maskAt(OpBuilder &b, TaskTile &task, Value headOfQueries, Value step) {
  IndexMath math{b, loc};
  Value offset = math.add(math.mul(task.batch, op.mask.strides[0]), math.mul(headOfQueries, op.mask.strides[1]));
  offset = math.add(offset, math.mul(task.first, maskOfItems()));
  offset = math.add(math.add(offset, math.mul(step, maskOfSteps())), op.mask.place.offset);
  return elementAddress(b, loc, op.mask.stored, task.stage.buffer(op.mask.place.buffer), offset);
}

/// Whether the mask says cheaply which keys no query of a tile attends to.
bool AttentionEmitter::maskEndsSteps() const {
  return lanesAreQueries() && op.mask.stored && op.mask.stored != op.element && op.mask.strides[3] == 1;
}

/// Behind the last block of keys to any of which some query of the tile attends. What follows would add zeros: of a cache that
/// is filled key by key, what is empty costs nothing.
Value AttentionEmitter::endOfAttended(OpBuilder &b, TaskTile &task) {
  IndexMath math{b, loc};
  Value zero = math.constant(0), queries = math.constant(maskOfItems() == 0 ? 1 : task.tile.numItems());
  int64_t whole = steps() / op.block * op.block, rest = steps() - whole;
  Value end = zero;
  auto walk = [&](int64_t from, int64_t to, int64_t count) {
    auto type = VectorType::get({count}, op.mask.stored);
    Value none = b.create<arith::ConstantOp>(loc, b.getZeroAttr(type));
    Value hidden = b.create<arith::ConstantOp>(loc, b.getZeroAttr(op.mask.stored));
    auto look = [&](OpBuilder &inner, Value first, Sums &last) {
      Value block = maskAt(inner, task, task.head, first);
      Sums seen =
          accumulateOver(inner, loc, zero, queries, 1, Sums{none}, [&](OpBuilder &each, Value query, Sums &any) {
            Value row =
                elementAddress(each, loc, op.mask.stored, block, IndexMath{each, loc}.mul(query, maskOfItems()));
            any[0] = each.create<arith::OrIOp>(loc, any[0], loadFirstLanes(each, loc, type, row, count));
          });
      Value any = inner.create<vector::ReductionOp>(loc, vector::CombiningKind::OR, seen[0]);
      Value isSeen = inner.create<arith::CmpIOp>(loc, arith::CmpIPredicate::ne, any, hidden);
      last[0] = inner.create<arith::SelectOp>(loc, isSeen, IndexMath{inner, loc}.add(first, count), last[0]);
    };
    end = accumulateOver(b, loc, math.constant(from), math.constant(to), count, Sums{end}, look)[0];
  };
  walk(0, whole, op.block);
  if (rest)
    walk(whole, steps(), rest);
  return end;
}

Sums AttentionEmitter::masked(OpBuilder &b, TaskTile &task, Value headOfQueries, Value step, Value row, Sums scores) {
  if (!op.mask.stored)
    return scores;
  if (transposesMask())
    return each<arith::AddFOp>(b, scores, task.tile.load(b, maskTile, row));
  Value from = maskAt(b, task, headOfQueries, step);
  if (maskOfItems() == 0) {
    Value one = b.create<vector::ExtractOp>(loc, loadMask(b, from, 1, 1), ArrayRef<int64_t>{0});
    return each<arith::AddFOp>(b, scores, broadcast(b, task.tile, one));
  }
  Sums added;
  for (int64_t v = 0; v < task.tile.numVectors(); ++v)
    added.push_back(loadMask(b, elementAddress(b, loc, op.mask.stored, from, v * lanes), task.tile.itemsOf(v), lanes));
  return each<arith::AddFOp>(b, scores, added);
}

/// Scores of keys behind their queries are -inf.
Sums AttentionEmitter::hideLater(OpBuilder &b, TaskTile &task, Value step, Sums scores) {
  if (!op.causal)
    return scores;
  IntegerType integer = op.element.isF64() ? b.getI64Type() : b.getI32Type();
  auto type = VectorType::get({lanes}, integer);
  SmallVector<Attribute> places;
  for (int64_t lane = 0; lane < lanes; ++lane)
    places.push_back(b.getIntegerAttr(integer, lane));
  Value lane = b.create<arith::ConstantOp>(loc, DenseElementsAttr::get(type, places));
  IndexMath math{b, loc};
  Value distance = math.sub(step, task.first); // from the first item of the tile
  auto predicate = lanesAreQueries() ? arith::CmpIPredicate::slt : arith::CmpIPredicate::sgt;
  Sums hidden = task.tile.splat(b, -INFINITY);
  for (int64_t v = 0; v < task.tile.numVectors(); ++v) {
    Value bound = math.add(distance, -v * lanes);
    if (integer.getWidth() == 32)
      bound = b.create<arith::TruncIOp>(loc, integer, bound);
    Value isHidden = b.create<arith::CmpIOp>(loc, predicate, lane, b.create<vector::BroadcastOp>(loc, type, bound));
    scores[v] = b.create<arith::SelectOp>(loc, isHidden, hidden[v], scores[v]);
  }
  return scores;
}

//===- products ---------------------------------------------------------------------------------------------------===//

void AttentionEmitter::score(OpBuilder &b, TaskTile &task, Value headOfQueries, Value firstStep, int64_t steps, Value a,
                             int64_t stride, Value items, Value scores, Finish finish) {
  const LaneTile &tile = task.tile;
  if (transposesMask()) {
    if (!maskTile)
      maskTile = onStack(task.stage, op.block);
    Value from = maskAt(b, task, headOfQueries, firstStep);
    tile.transposeIn(b, maskTile, steps, maskOfItems(), [&](OpBuilder &inner, Value offset, int64_t count) {
      return loadMask(inner, elementAddress(inner, loc, op.mask.stored, from, offset), count, lanes);
    });
  }
  tile.multiply(
      b, {a, stride, 1, items, steps, op.depth}, rowsAtOnce(tile),
      [&](OpBuilder &inner, Value) { return tile.splat(inner, 0); },
      [&](OpBuilder &inner, Value row, Sums sums) {
        Value step = IndexMath{inner, loc}.add(firstStep, row);
        sums = masked(inner, task, headOfQueries, step, row, scaled(inner, tile, sums));
        tile.store(inner, finish(inner, row, hideLater(inner, task, step, sums)), scores, row);
      });
}

void AttentionEmitter::accumulate(OpBuilder &b, const LaneTile &tile, Value a, int64_t stride, Value from,
                                  int64_t steps, Value sums, int64_t elements,
                                  llvm::function_ref<Sums(OpBuilder &, Sums)> begin) {
  tile.multiply(
      b, {a, 1, stride, from, elements, steps}, rowsAtOnce(tile),
      [&](OpBuilder &inner, Value row) {
        Sums before = tile.load(inner, sums, row);
        return begin ? begin(inner, before) : before;
      },
      [&](OpBuilder &inner, Value row, const Sums &after) { tile.store(inner, after, sums, row); });
}

//===- arithmetic -------------------------------------------------------------------------------------------------===//

Sums AttentionEmitter::select(OpBuilder &b, arith::CmpFPredicate predicate, const Sums &x, const Sums &y,
                              const Sums &then, const Sums &otherwise) {
  Sums result;
  for (size_t v = 0; v < x.size(); ++v) {
    Value holds = b.create<arith::CmpFOp>(loc, predicate, x[v], y[v]);
    result.push_back(b.create<arith::SelectOp>(loc, holds, then[v], otherwise[v]));
  }
  return result;
}

void AttentionEmitter::scaleRows(OpBuilder &b, const LaneTile &tile, Value rows, int64_t count, const Sums &by) {
  loopOver(b, loc, constantI64(b, loc, 0), constantI64(b, loc, count), 1, [&](OpBuilder &inner, Value row) {
    tile.store(inner, each<arith::MulFOp>(inner, tile.load(inner, rows, row), by), rows, row);
  });
}

//===- forward ----------------------------------------------------------------------------------------------------===//

namespace {

class ForwardEmitter : public AttentionEmitter {
public:
  using AttentionEmitter::AttentionEmitter;

private:
  bool lanesAreQueries() const final { return true; }
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
  bringIn(b, task, queries, at(b, task.stage, op.q, task.batch, task.head, task.first), op.depth, op.q.item);
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

// A query that has met no key yet keeps -inf; what is subtracted for it is 0.
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

//===- the gradient of queries ------------------------------------------------------------------------------------===//

namespace {

class QueryGradientEmitter : public AttentionEmitter {
public:
  using AttentionEmitter::AttentionEmitter;

private:
  bool lanesAreQueries() const final { return true; }
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
  bringIn(b, task, queries, ofTask(op.q), op.depth, op.q.item);
  bringIn(b, task, dY, ofTask(op.dY), op.valueDepth, op.dY.item);
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
  bool lanesAreQueries() const final { return false; }
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
  bringIn(b, task, keys, ofTask(op.k), op.depth, op.k.item);
  bringIn(b, task, values, ofTask(op.v), op.valueDepth, op.v.item);
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

Stage emitAttention(const StageModule &module, llvm::StringRef name, Location loc, const Attention &attention,
                    const Target &target) {
  return ForwardEmitter(module, name, loc, attention, target).emit();
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
