#include "backends/cpu/compiler/attention/AttentionEmitter.h"

#include "backends/cpu/compiler/machine/Halves.h"
#include "backends/cpu/compiler/machine/VectorAccess.h"
#include "backends/cpu/compiler/product/tile/IndexMath.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <cmath>

namespace sluice::cpu {

using namespace mlir;

//===- tasks ------------------------------------------------------------------------------------------------------===//

Stage AttentionEmitter::emit() {
  constexpr int64_t kWorthwhile = 1 << 20; // multiply-adds of a task
  int64_t ofRow = width() * steps() * (op.depth + op.valueDepth);
  result = {name, heads() * tiles(), 0};
  LaneTile whole(loc, vector, std::min(items(), width()));
  result.tile = std::to_string(rowsAtOnce(whole)) + " x " + std::to_string(whole.numItems());
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
  if (op.causal && itemsAreQueries()) // no key after the last query
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

Value AttentionEmitter::elementsOnStack(StageFunction &stage, int64_t elements) {
  constexpr unsigned kAlignment = 64;
  OpBuilder b = OpBuilder::atBlockBegin(&stage.func.getBody().front());
  return b.create<LLVM::AllocaOp>(loc, LLVM::LLVMPointerType::get(b.getContext()), op.element,
                                  constantI64(b, loc, elements), kAlignment);
}

Value AttentionEmitter::at(OpBuilder &b, StageFunction &stage, const Attention::Tensor &tensor, Value batch, Value head,
                           Value item) {
  IndexMath math{b, loc};
  Value offset = math.add(math.mul(batch, tensor.batch), math.mul(head, tensor.head));
  offset = math.add(math.add(offset, math.mul(item, tensor.item)), tensor.place.offset);
  return elementAddress(b, loc, op.element, stage.buffer(tensor.place.buffer), offset);
}

void AttentionEmitter::bringIn(OpBuilder &b, const LaneTile &items, Value tile, Value from, int64_t elements,
                               int64_t stride) {
  items.transposeIn(b, tile, elements, stride, [&](OpBuilder &inner, Value offset, int64_t count) {
    return loadFirstLanes(inner, loc, vector, elementAddress(inner, loc, op.element, from, offset), count);
  });
}

void AttentionEmitter::bringOut(OpBuilder &b, TaskTile &task, Value tile, int64_t elements,
                                const Attention::Result &result) {
  if (!result.stored)
    return;
  Value base = resultAt(b, task, result);
  task.tile.transposeOut(b, tile, elements, result.tensor.item, [&](OpBuilder &inner, Value row, Value place) {
    storeElements(inner, row, base, place, result);
  });
}

Value AttentionEmitter::resultAt(OpBuilder &b, TaskTile &task, const Attention::Result &result) {
  const Attention::Tensor &tensor = result.tensor;
  IndexMath math{b, loc};
  Value offset = math.add(math.mul(task.batch, tensor.batch), math.mul(task.head, tensor.head));
  offset = math.add(math.add(offset, math.mul(task.first, tensor.item)), tensor.place.offset);
  return elementAddress(b, loc, typeInMemory(result.stored), task.stage.buffer(tensor.place.buffer), offset);
}

void AttentionEmitter::storeElements(OpBuilder &b, Value elements, Value base, Value offset,
                                     const Attention::Result &result) {
  if (result.stored != op.element)
    elements = narrowToHalf(b, loc, roundToHalf(b, loc, elements, result.stored), result.stored);
  storeVector(b, loc, elements, elementAddress(b, loc, typeInMemory(result.stored), base, offset));
}

//===- masks ------------------------------------------------------------------------------------------------------===//

/// The addend of scores, in a vector of `length`, of which `count` lanes are active.
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

/// The address of the mask at `step` for the first item of the tile.
Value AttentionEmitter::maskAt(OpBuilder &b, TaskTile &task, Value headOfQueries, Value step) {
  IndexMath math{b, loc};
  Value offset = math.add(math.mul(task.batch, op.mask.strides[0]), math.mul(headOfQueries, op.mask.strides[1]));
  offset = math.add(offset, math.mul(task.first, maskOfItems()));
  offset = math.add(math.add(offset, math.mul(step, maskOfSteps())), op.mask.place.offset);
  return elementAddress(b, loc, op.mask.stored, task.stage.buffer(op.mask.place.buffer), offset);
}

/// Whether the loop over keys ends after the last key that the mask shows: a boolean mask that is contiguous along keys
/// is cheap to search.
bool AttentionEmitter::maskEndsSteps() const {
  return itemsAreQueries() && op.mask.stored && op.mask.stored != op.element && op.mask.strides[3] == 1;
}

/// The end of the last block of keys to which some query of the tile attends. Later blocks would only add zeros. The
/// empty part of a cache of keys, which fills key by key, therefore costs only this search.
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

/// Scores of keys after their queries are -inf.
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
  auto predicate = itemsAreQueries() ? arith::CmpIPredicate::slt : arith::CmpIPredicate::sgt;
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

Sums AttentionEmitter::larger(OpBuilder &b, const Sums &x, const Sums &y) {
  return select(b, arith::CmpFPredicate::OGT, x, y, x, y);
}

Sums AttentionEmitter::broadcast(OpBuilder &b, const LaneTile &tile, Value scalar) {
  return Sums(tile.numVectors(), b.create<vector::BroadcastOp>(loc, vector, scalar));
}

Sums AttentionEmitter::scaled(OpBuilder &b, const LaneTile &tile, const Sums &x) {
  return op.scale == 1 ? x : each<arith::MulFOp>(b, x, tile.splat(b, op.scale));
}

Sums AttentionEmitter::subtrahend(OpBuilder &b, const LaneTile &tile, const Sums &logsumexp) {
  Sums none = tile.splat(b, -INFINITY);
  return select(b, arith::CmpFPredicate::OEQ, logsumexp, none, tile.splat(b, INFINITY), logsumexp);
}

void AttentionEmitter::scaleRows(OpBuilder &b, const LaneTile &tile, Value rows, int64_t count, const Sums &by) {
  loopOver(b, loc, constantI64(b, loc, 0), constantI64(b, loc, count), 1, [&](OpBuilder &inner, Value row) {
    tile.store(inner, each<arith::MulFOp>(inner, tile.load(inner, rows, row), by), rows, row);
  });
}

} // namespace sluice::cpu
