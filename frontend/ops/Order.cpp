// Functions of the order of elements along a dimension: cumulative sums, largest elements, and gathering by index.
#include "frontend/ops/Reduce.h"

using namespace mlir;

namespace sluice {

using detail::Call;
using detail::Rows;

//===- sums -------------------------------------------------------------------------------------------------------===//

Tensor cumsum(Arg x, std::int64_t dim, CumsumOptions options) {
  Call call("cumsum", x, Rows::merged);
  int64_t axis = call.axis(x.tensor, dim);
  if (ShapedType::isDynamic(Call::shape(x.tensor)[axis]))
    call.fail("would add rows of the batch to each other, one after another");
  SmallVector<NamedAttribute> attributes{call.integer("axis", axis)};
  if (options.exclusive)
    attributes.push_back(call.unit("exclusive"));
  if (options.reverse)
    attributes.push_back(call.unit("reverse"));
  Tensor wide = is_float(x.tensor.dtype()) ? x.tensor : call.cast(x.tensor, DType::i64);
  return call.emit<ir::CumSumOp>({wide}, attributes);
}

//===- elements by their index ------------------------------------------------------------------------------------===//

/// Throws unless both have the same rank and equal sizes except along the axis.
static Tensor takenAlong(Call &call, const Tensor &x, const Tensor &index, int64_t axis) {
  if (index.dtype() != DType::i32 && index.dtype() != DType::i64)
    call.fail(std::string("indices are i32 or i64, not ") + to_string(index.dtype()));
  if (ShapedType::isDynamic(Call::shape(x)[axis]))
    call.fail("cannot choose rows of the batch, whose size is only known at the call");
  return call.emit<ir::TakeAlongOp>({x, index}, call.integer("axis", axis));
}

static void requireDims(const Call &call, const Tensor &x, const Tensor &index) {
  if (Call::rank(x) != Call::rank(index) || Call::mergedAt(x) != Call::mergedAt(index))
    call.fail("the index and the operand differ in their dimensions");
}

Tensor take_along_dim(Arg x, const Tensor &index, std::int64_t dim) {
  Call call("take_along_dim", x, Arg(index, x.where), Rows::merged);
  requireDims(call, x.tensor, index);
  int64_t axis = call.axis(x.tensor, dim);
  SmallVector<int64_t> ofX(Call::shape(x.tensor)), ofIndex(Call::shape(index));
  int64_t size = std::exchange(ofX[axis], 1), count = std::exchange(ofIndex[axis], 1);
  SmallVector<int64_t> common = call.commonShape(ofX, ofIndex);
  auto with = [&](int64_t along) {
    SmallVector<int64_t> shape(common);
    shape[axis] = along;
    return shape;
  };
  return takenAlong(call, call.broadcast(x.tensor, with(size)), call.broadcast(index, with(count)), axis);
}

// Elements of x outside the index's extent are never gathered.
Tensor gather(Arg x, std::int64_t dim, const Tensor &index) {
  Call call("gather", x, Arg(index, x.where), Rows::merged);
  requireDims(call, x.tensor, index);
  int64_t axis = call.axis(x.tensor, dim);
  SmallVector<int64_t> ends(Call::shape(x.tensor)), starts(ends.size(), 0), steps(ends.size(), 1);
  for (int64_t i = 0; i < Call::rank(index); ++i) {
    int64_t size = Call::shape(index)[i];
    if (i != axis && (ShapedType::isDynamic(size) != ShapedType::isDynamic(ends[i]) || size > ends[i]))
      call.fail("the index has " + call.print(size) + " elements in a dimension of " + call.print(ends[i]));
    ends[i] = i == axis ? ends[i] : size;
  }
  Tensor beside = ArrayRef(ends) == Call::shape(x.tensor)
                      ? x.tensor
                      : call.emit<ir::SliceOp>(
                            {x.tensor}, {call.list("start", starts), call.list("end", ends), call.list("step", steps)});
  return takenAlong(call, beside, index, axis);
}

//===- the largest ------------------------------------------------------------------------------------------------===//

namespace {

/// The order of elements along an axis of x: by descending keys; ties by ascending positions.
class Order {
public:
  Order(Call &call, const Tensor &x, int64_t axis, bool largest)
      : call(call), axis(axis), size(Call::shape(x)[axis]), places(size > kMostInI32 ? DType::i64 : DType::i32),
        isNumber(isNumberOf(x)), key(keyOf(x, largest)), place(placesOf(x)) {}

  /// The index at a position; positions of NaN form a second range after those of numbers.
  Tensor indexAt(const Tensor &at) {
    if (!bool(isNumber))
      return at;
    Tensor round = call.literal(double(size), at);
    return call.emit<ir::WhereOp>({compared(ir::Predicate::lt, at, round), at, call.emit<ir::SubOp>({at, round})});
  }

protected:
  /// Numbers and NaN have separate places, and one place follows all others.
  static constexpr int64_t kMostInI32 = std::numeric_limits<int32_t>::max() / 2;

  Tensor compared(ir::Predicate predicate, const Tensor &a, const Tensor &b) {
    auto attribute = ir::PredicateAttr::get(&call.graph.context, predicate);
    return call.emit<ir::CompareOp>({a, b}, call.attribute("predicate", attribute));
  }

  Tensor spread(const Tensor &kept) { return call.broadcast(kept, Call::shape(key)); }

  template <class Op> Tensor along(const Tensor &x) {
    return call.emit<Op>({x}, {call.list("axes", axis), call.unit("keepdims")});
  }

  /// Empty for integers, which are always numbers.
  Tensor isNumberOf(const Tensor &x) { return is_float(x.dtype()) ? compared(ir::Predicate::eq, x, x) : Tensor(); }

  /// NaN comes after all numbers: its key is that of the last numbers, and its position orders it after them.
  Tensor keyOf(const Tensor &x, bool largest) {
    Tensor y = largest ? x : detail::turned(call, x);
    if (!is_float(x.dtype()))
      return y;
    return call.emit<ir::StopGradientOp>(
        {call.emit<ir::WhereOp>({isNumber, y, call.literal(detail::rangeOf(x.dtype()).first, x)})});
  }

  Tensor placesOf(const Tensor &x) {
    auto from = [&](double start) {
      return call.iota(Call::type(x).clone(call.graph.elementType(places)), axis, start, 1);
    };
    return isNumber ? call.emit<ir::WhereOp>({isNumber, from(0), from(double(size))}) : from(0);
  }

  Call &call;
  int64_t axis, size;
  DType places;
  Tensor isNumber, key, place;
};

/// Selects elements one by one.
class Choice : public Order {
public:
  Choice(Call &call, const Tensor &x, int64_t axis, bool largest) : Order(call, x, axis, largest), least(leastOf(x)) {}

  /// The key and the position of the first element, along an axis of size 1.
  std::pair<Tensor, Tensor> first() { return chosen({}); }

  /// The key and the position of the element after a given one.
  std::pair<Tensor, Tensor> after(const Tensor &before, const Tensor &at) {
    Tensor last = spread(before);
    Tensor isNext =
        call.emit<ir::AndOp>({compared(ir::Predicate::eq, key, last), compared(ir::Predicate::gt, place, spread(at))});
    return chosen(call.emit<ir::OrOp>({compared(ir::Predicate::lt, key, last), isNext}));
  }

private:
  /// The smallest key. The smallest i64 cannot be an attribute, so the minimum of the line is used for i64.
  Tensor leastOf(const Tensor &x) {
    return x.dtype() == DType::i64 ? spread(along<ir::ReduceMinOp>(key))
                                   : call.literal(detail::rangeOf(x.dtype()).first, x);
  }

  /// Selects from the remaining elements, or from all.
  std::pair<Tensor, Tensor> chosen(const Tensor &isLeft) {
    Tensor best = along<ir::ReduceMaxOp>(isLeft ? call.emit<ir::WhereOp>({isLeft, key, least}) : key);
    Tensor isBest = compared(ir::Predicate::eq, key, spread(best));
    if (isLeft)
      isBest = call.emit<ir::AndOp>({isBest, isLeft});
    Tensor behindAll = call.literal(double(2 * size), place);
    return {best, along<ir::ReduceMinOp>(call.emit<ir::WhereOp>({isBest, place, behindAll}))};
  }

  Tensor least;
};

/// Batcher's bitonic sorting network. Each step compares every element with a partner, so that the steps form a scan.
/// The network sorts blocks of 2, 4, 8, ... elements. First, it compares each element with its mirror image in the
/// block. Then it compares elements that are half a block apart, in blocks of half the size, and so on. The lower of
/// two elements always receives the one that is first in order. The last block may therefore be incomplete: padding
/// would be last in order and would never move.
class Network : public Order {
public:
  Network(Call &call, const Tensor &x, int64_t axis, bool largest)
      : Order(call, x, axis, largest), counts(size > kMostInF32 ? DType::f64 : DType::f32) {}

  /// The number of steps that sort `size` elements.
  static int64_t stepsFor(int64_t size) {
    int64_t blocks = llvm::Log2_64_Ceil(uint64_t(size));
    return blocks * (blocks + 1) / 2;
  }

  /// The positions of the first `count` elements, in order.
  Tensor firstPlaces(int64_t count, std::source_location where) {
    auto step = [&](const std::vector<Tensor> &carried, const std::vector<Tensor> &now) {
      return exchanged(carried[0], carried[1], now);
    };
    Tensor all = scan({key, place}, steps(), 0, step, {}, where).carried[1];
    if (count == size)
      return all;
    SmallVector<int64_t> starts(Call::rank(all), 0), ends(Call::shape(all)), strides(starts.size(), 1);
    ends[axis] = count;
    return call.emit<ir::SliceOp>({all},
                                  {call.list("start", starts), call.list("end", ends), call.list("step", strides)});
  }

private:
  /// f32 represents all integers up to this bound, and even integers up to twice the bound.
  static constexpr int64_t kMostInF32 = int64_t(1) << 23;

  /// For each step: the size of its blocks, the reciprocal of that size, and 1 if partners are mirror images.
  std::vector<Tensor> steps() {
    SmallVector<double> blocks, inverses, mirrors;
    for (int64_t sorted = 2; sorted < 2 * size; sorted *= 2)
      for (int64_t block = sorted; block >= 2; block /= 2) {
        blocks.push_back(double(block));
        inverses.push_back(1 / double(block));
        mirrors.push_back(block == sorted);
      }
    Type type = call.graph.elementType(counts);
    return {call.vector(blocks, type), call.vector(inverses, type), call.vector(mirrors, type)};
  }

  /// The partner of each element, which may lie past the end, and whether the element is the upper of the two. Powers
  /// of two and all counted values are exact.
  std::pair<Tensor, Tensor> partners(const std::vector<Tensor> &now) {
    RankedTensorType type = Call::type(key).clone(call.graph.elementType(counts));
    auto all = [&](const Tensor &number) { return call.expand(number, {}, type.getShape()); };
    Tensor index = call.iota(type, axis, 0, 1), block = all(now[0]), one = call.literal(1, block);
    Tensor number = call.emit<ir::FloorOp>({call.emit<ir::MulOp>({index, all(now[1])})});
    Tensor inBlock = call.emit<ir::SubOp>({index, call.emit<ir::MulOp>({number, block})});
    Tensor half = call.emit<ir::MulOp>({block, call.literal(0.5, block)}),
           isUpper = compared(ir::Predicate::ge, inBlock, half);
    Tensor toMirror =
               call.emit<ir::SubOp>({call.emit<ir::SubOp>({block, one}), call.emit<ir::AddOp>({inBlock, inBlock})}),
           across = call.emit<ir::WhereOp>({isUpper, call.emit<ir::NegOp>({half}), half});
    Tensor isMirror = compared(ir::Predicate::eq, all(now[2]), one);
    return {call.emit<ir::AddOp>({index, call.emit<ir::WhereOp>({isMirror, toMirror, across})}), isUpper};
  }

  /// One compare-exchange step of the network.
  ScanStep exchanged(const Tensor &own, const Tensor &ownPlace, const std::vector<Tensor> &now) {
    auto [partner, isUpper] = partners(now);
    Tensor at = call.cast(partner, places);
    Tensor other = call.emit<ir::TakeAlongOp>({own, at}, call.integer("axis", axis)),
           otherPlace = call.emit<ir::TakeAlongOp>({ownPlace, at}, call.integer("axis", axis));
    Tensor isBefore = call.emit<ir::AndOp>(
        {compared(ir::Predicate::eq, own, other), compared(ir::Predicate::lt, ownPlace, otherPlace)});
    Tensor isFirst = call.emit<ir::OrOp>({compared(ir::Predicate::gt, own, other), isBefore});
    Tensor isAlone = compared(ir::Predicate::gt, partner, call.literal(double(size - 1), partner));
    Tensor stays = call.emit<ir::OrOp>({call.emit<ir::XorOp>({isUpper, isFirst}), isAlone});
    return {{call.emit<ir::WhereOp>({stays, own, other}), call.emit<ir::WhereOp>({stays, ownPlace, otherPlace})}, {}};
  }

  DType counts;
};

} // namespace

/// Up to this many selections are unrolled; larger counts use a scan.
static constexpr int64_t kMostChoices = 4;

/// The positions after the first, as steps of a scan along the axis.
static Tensor scanned(Call &call, Choice &choice, const std::pair<Tensor, Tensor> &first, int64_t axis, int64_t count,
                      std::source_location where) {
  SmallVector<int64_t> steps(axis, 1);
  steps.push_back(count);
  Tensor along = call.full(0, RankedTensorType::get(steps, call.graph.elementType(DType::i32)));
  SmallVector<int64_t> line(Call::shape(first.second));
  line.erase(line.begin() + axis);
  auto step = [&](const std::vector<Tensor> &carried, const std::vector<Tensor> &) {
    auto [best, at] = choice.after(carried[0], carried[1]);
    return ScanStep{{best, at}, {call.reshape(at, line)}};
  };
  return scan({first.first, first.second}, {along}, axis, step, {}, where).stacked.front();
}

/// The indices of the first `count` elements, in order. A network step costs about as much as two selections.
static Tensor indicesOf(Call &call, const Tensor &x, int64_t axis, int64_t count, bool largest,
                        std::source_location where) {
  if (count > std::max(kMostChoices, 2 * Network::stepsFor(Call::shape(x)[axis]))) {
    Network network(call, x, axis, largest);
    return network.indexAt(network.firstPlaces(count, where));
  }
  Choice choice(call, x, axis, largest);
  std::pair<Tensor, Tensor> one = choice.first();
  SmallVector<Tensor> places{one.second};
  if (count > kMostChoices) {
    places.push_back(scanned(call, choice, one, axis, count - 1, where));
  } else {
    while (int64_t(places.size()) < count) {
      one = choice.after(one.first, one.second);
      places.push_back(one.second);
    }
  }
  return choice.indexAt(count == 1 ? places.front() : call.emit<ir::ConcatOp>(places, call.integer("axis", axis)));
}

// Temporarily splits merged rows, as a scan does.
static TopK ordered(Call &call, const Arg &x, int64_t axis, int64_t count, bool largest, DType dtype) {
  detail::requireIndices(call, Call::shape(x.tensor)[axis], dtype);
  bool isMerged = detail::Access::isMerged(x.tensor);
  Tensor own = call.seen(x.tensor, false), indices = indicesOf(call, own, axis, count, largest, x.where);
  return {call.seen(takenAlong(call, own, indices, axis), isMerged), call.seen(call.cast(indices, dtype), isMerged)};
}

static int64_t orderedAxis(const Call &call, const Tensor &x, int64_t dim) {
  if (x.dtype() == DType::boolean)
    call.fail("works on numbers, not bool; convert with .to(f32)");
  int64_t axis = call.axis(x, dim);
  if (ShapedType::isDynamic(Call::shape(x)[axis]))
    call.fail("would put the rows of the batch in order");
  return axis;
}

TopK topk(Arg x, std::int64_t k, std::int64_t dim, bool largest, bool, DType dtype) {
  Call call("topk", x, Rows::merged);
  int64_t axis = orderedAxis(call, x.tensor, dim), size = Call::shape(x.tensor)[axis];
  if (k < 1 || k > size)
    call.fail("k is from 1 to the size of the dimension, " + std::to_string(size) + ", not " + std::to_string(k));
  return ordered(call, x, axis, k, largest, dtype);
}

TopK sort(Arg x, std::int64_t dim, bool descending, DType dtype) {
  Call call("sort", x, Rows::merged);
  int64_t axis = orderedAxis(call, x.tensor, dim);
  return ordered(call, x, axis, Call::shape(x.tensor)[axis], descending, dtype);
}

Tensor argsort(Arg x, std::int64_t dim, bool descending, DType dtype) {
  return sort(x, dim, descending, dtype).indices;
}

} // namespace sluice
