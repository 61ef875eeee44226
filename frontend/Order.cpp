// What depends on the order of elements along a dimension: sums up to each one, the largest ones, and who is taken.
#include "Reduce.h"

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

/// Both have as many dimensions, and one size in each but the axis.
static Tensor takenAlong(Call &call, const Tensor &x, const Tensor &index, int64_t axis) {
  if (index.dtype() != DType::i32 && index.dtype() != DType::i64)
    call.fail(std::string("indices are i32 or i64, not ") + to_string(index.dtype()));
  if (ShapedType::isDynamic(Call::shape(x)[axis]))
    call.fail("would choose rows of the batch; how many there are, no shape can say");
  return call.emit<ir::TakeAlongOp>({x, index}, call.integer("axis", axis));
}

static void requireDims(const Call &call, const Tensor &x, const Tensor &index) {
  if (Call::rank(x) != Call::rank(index) || Call::mergedAt(x) != Call::mergedAt(index))
    call.fail("the index has other dimensions than what it chooses from");
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

// Elements of x that no index is beside are never taken.
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

/// Chooses, along an axis of x, one element after another: the largest first, of equal ones that with the least index.
class Choice {
public:
  Choice(Call &call, const Tensor &x, int64_t axis, bool largest)
      : call(call), axis(axis), size(Call::shape(x)[axis]), isNumber(isNumberOf(x)), key(keyOf(x, largest)),
        place(placesOf(x)), least(leastOf(x)) {}

  /// The first one: its key and its place, along an axis of size 1.
  std::pair<Tensor, Tensor> first() { return chosen({}); }

  /// The one that follows another.
  std::pair<Tensor, Tensor> after(const Tensor &before, const Tensor &at) {
    Tensor last = spread(before);
    Tensor isNext =
        call.emit<ir::AndOp>({compared(ir::Predicate::eq, key, last), compared(ir::Predicate::gt, place, spread(at))});
    return chosen(call.emit<ir::OrOp>({compared(ir::Predicate::lt, key, last), isNext}));
  }

  /// The index at a place: a second round of them is that of what is no number.
  Tensor indexAt(const Tensor &at) {
    if (!bool(isNumber))
      return at;
    Tensor round = call.literal(double(size), at);
    return call.emit<ir::WhereOp>({compared(ir::Predicate::lt, at, round), at, call.emit<ir::SubOp>({at, round})});
  }

private:
  Tensor compared(ir::Predicate predicate, const Tensor &a, const Tensor &b) {
    auto attribute = ir::PredicateAttr::get(&call.graph.context, predicate);
    return call.emit<ir::CompareOp>({a, b}, call.attribute("predicate", attribute));
  }

  Tensor spread(const Tensor &kept) { return call.broadcast(kept, Call::shape(key)); }

  template <class Op> Tensor along(const Tensor &x) {
    return call.emit<Op>({x}, {call.list("axes", axis), call.unit("keepdims")});
  }

  /// Nothing of integers, which are all numbers.
  Tensor isNumberOf(const Tensor &x) { return is_float(x.dtype()) ? compared(ir::Predicate::eq, x, x) : Tensor(); }

  /// What is no number comes behind all numbers: with the last of them, by its place.
  Tensor keyOf(const Tensor &x, bool largest) {
    Tensor y = largest ? x : detail::turned(call, x);
    if (!is_float(x.dtype()))
      return y;
    return call.emit<ir::StopGradientOp>(
        {call.emit<ir::WhereOp>({isNumber, y, call.literal(detail::rangeOf(x.dtype()).first, x)})});
  }

  Tensor placesOf(const Tensor &x) {
    auto from = [&](double start) {
      return call.iota(Call::type(x).clone(call.graph.elementType(DType::i32)), axis, start, 1);
    };
    return isNumber ? call.emit<ir::WhereOp>({isNumber, from(0), from(double(size))}) : from(0);
  }

  /// What no key is less than. The least i64 is no number that an op can be told: there it is that of the line.
  Tensor leastOf(const Tensor &x) {
    return x.dtype() == DType::i64 ? spread(along<ir::ReduceMinOp>(key))
                                   : call.literal(detail::rangeOf(x.dtype()).first, x);
  }

  /// Of those that are left, or all.
  std::pair<Tensor, Tensor> chosen(const Tensor &isLeft) {
    Tensor best = along<ir::ReduceMaxOp>(isLeft ? call.emit<ir::WhereOp>({isLeft, key, least}) : key);
    Tensor isBest = compared(ir::Predicate::eq, key, spread(best));
    if (isLeft)
      isBest = call.emit<ir::AndOp>({isBest, isLeft});
    Tensor behindAll = call.literal(double(2 * size), place);
    return {best, along<ir::ReduceMinOp>(call.emit<ir::WhereOp>({isBest, place, behindAll}))};
  }

  Call &call;
  int64_t axis, size;
  Tensor isNumber, key, place, least;
};

} // namespace

/// So many choices are made one behind another; more are a scan's steps.
static constexpr int64_t kMostChoices = 4;

/// The places behind the first one, as steps of a scan along the axis.
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

/// Those of so many elements, the largest first.
static Tensor indicesOf(Call &call, const Tensor &x, int64_t axis, int64_t count, bool largest,
                        std::source_location where) {
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

// The rows are taken apart meanwhile, as a scan's are.
static TopK ordered(Call &call, const Arg &x, int64_t axis, int64_t count, bool largest) {
  bool isMerged = detail::Access::isMerged(x.tensor);
  Tensor own = call.seen(x.tensor, false), indices = indicesOf(call, own, axis, count, largest, x.where);
  return {call.seen(takenAlong(call, own, indices, axis), isMerged), call.seen(indices, isMerged)};
}

static int64_t orderedAxis(const Call &call, const Tensor &x, int64_t dim) {
  if (x.dtype() == DType::boolean)
    call.fail("works on numbers, not bool; convert with .to(f32)");
  int64_t axis = call.axis(x, dim);
  if (ShapedType::isDynamic(Call::shape(x)[axis]))
    call.fail("would put the rows of the batch in order");
  return axis;
}

TopK topk(Arg x, std::int64_t k, std::int64_t dim, bool largest, bool) {
  Call call("topk", x, Rows::merged);
  int64_t axis = orderedAxis(call, x.tensor, dim), size = Call::shape(x.tensor)[axis];
  if (k < 1 || k > size)
    call.fail("k is from 1 to the size of the dimension, " + std::to_string(size) + ", not " + std::to_string(k));
  return ordered(call, x, axis, k, largest);
}

TopK sort(Arg x, std::int64_t dim, bool descending) {
  Call call("sort", x, Rows::merged);
  int64_t axis = orderedAxis(call, x.tensor, dim);
  return ordered(call, x, axis, Call::shape(x.tensor)[axis], descending);
}

Tensor argsort(Arg x, std::int64_t dim, bool descending) { return sort(x, dim, descending).indices; }

} // namespace sluice
