// Reductions and softmax.
#include "frontend/ops/Reduce.h"

using namespace mlir;

namespace sluice {

using detail::Call;
using detail::reduce;
using detail::Rows;
using detail::widened;

//===- reductions -------------------------------------------------------------------------------------------------===//

/// Integers and bool as i64.
static Tensor wide(Call &call, const Tensor &x) { return is_float(x.dtype()) ? x : call.cast(x, DType::i64); }

Tensor sum(Arg x, Axes dim, bool keepdim) {
  Call call("sum", x, Rows::merged);
  return reduce<ir::SumOp>(call, wide(call, x.tensor), dim, keepdim);
}
Tensor mean(Arg x, Axes dim, bool keepdim) {
  Call call("mean", x, Rows::merged);
  call.requireFloat(x.tensor);
  return reduce<ir::MeanOp>(call, x.tensor, dim, keepdim);
}
Tensor max(Arg x, Axes dim, bool keepdim) {
  Call call("max", x, Rows::merged);
  return reduce<ir::ReduceMaxOp>(call, x.tensor, dim, keepdim);
}
Tensor min(Arg x, Axes dim, bool keepdim) {
  Call call("min", x, Rows::merged);
  return reduce<ir::ReduceMinOp>(call, x.tensor, dim, keepdim);
}

Tensor prod(Arg x, Axes dim, bool keepdim) {
  Call call("prod", x, Rows::merged);
  return reduce<ir::ProdOp>(call, wide(call, x.tensor), dim, keepdim);
}

// Computed in a type that replicas can reduce.
template <class Op> static Tensor reduceTruth(const char *name, const Arg &x, const Axes &dims, bool keepdim) {
  Call call(name, x, Rows::merged);
  Tensor truth = call.cast(call.cast(x.tensor, DType::boolean), DType::i32);
  return call.cast(reduce<Op>(call, truth, dims, keepdim), DType::boolean);
}

Tensor any(Arg x, Axes dim, bool keepdim) { return reduceTruth<ir::ReduceMaxOp>("any", x, dim, keepdim); }
Tensor all(Arg x, Axes dim, bool keepdim) { return reduceTruth<ir::ReduceMinOp>("all", x, dim, keepdim); }

//===- statistics -------------------------------------------------------------------------------------------------===//

/// Repeats a reduction's result with kept dimensions to the shape of x.
static Tensor repeated(Call &call, const Tensor &kept, const Tensor &x) { return call.broadcast(kept, Call::shape(x)); }

// The mean needs no gradient: its contribution to the sum of squares is 0, because deviations from the mean sum to 0.
static Tensor variance(Call &call, const Tensor &x, const Axes &dims, int64_t correction, bool keepdim) {
  int64_t count = 1;
  for (int64_t axis : call.axes(x, dims)) {
    if (ShapedType::isDynamic(Call::shape(x)[axis]))
      call.fail("cannot reduce over the batch; only batch_norm computes the variance of its rows");
    count *= Call::shape(x)[axis];
  }
  if (correction < 0 || correction >= count)
    call.fail("correction is from 0 to below the number of elements, " + std::to_string(count) + ", not " +
              std::to_string(correction));
  Tensor mean = call.emit<ir::StopGradientOp>({reduce<ir::MeanOp>(call, x, dims, true)});
  Tensor centred = call.emit<ir::SubOp>({x, repeated(call, mean, x)});
  Tensor squares = reduce<ir::SumOp>(call, call.emit<ir::SquareOp>({centred}), dims, keepdim);
  return call.emit<ir::DivOp>({squares, call.literal(double(count - correction), squares)});
}

Tensor var(Arg x, Axes dim, std::int64_t correction, bool keepdim) {
  Call call("var", x, Rows::merged);
  call.requireFloat(x.tensor);
  return call.cast(variance(call, widened(call, x.tensor), dim, correction, keepdim), x.tensor.dtype());
}

Tensor std(Arg x, Axes dim, std::int64_t correction, bool keepdim) {
  Call call("std", x, Rows::merged);
  call.requireFloat(x.tensor);
  Tensor var = variance(call, widened(call, x.tensor), dim, correction, keepdim);
  return call.cast(detail::rootOfSquares(call, var), x.tensor.dtype());
}

// Subtracts the maximum so that no power of e overflows; subtracts nothing if the maximum is infinite. The sum of the
// powers may still exceed the range of f16 and bf16.
Tensor logsumexp(Arg x, Axes dim, bool keepdim) {
  Call call("logsumexp", x, Rows::merged);
  call.requireFloat(x.tensor);
  Tensor wide = widened(call, x.tensor), largest = reduce<ir::ReduceMaxOp>(call, wide, dim, true);
  Tensor shift = call.emit<ir::StopGradientOp>(
      {call.emit<ir::WhereOp>({call.emit<ir::IsInfOp>({largest}), call.literal(0.0, largest), largest})});
  Tensor powers = call.emit<ir::ExpOp>({call.emit<ir::SubOp>({wide, repeated(call, shift, wide)})});
  Tensor total = call.emit<ir::LogOp>({reduce<ir::SumOp>(call, powers, dim, keepdim)});
  return call.cast(call.emit<ir::AddOp>({total, call.reshape(shift, Call::shape(total))}), x.tensor.dtype());
}

void detail::requireIndices(const Call &call, int64_t size, DType dtype) {
  if (dtype != DType::i32 && dtype != DType::i64)
    call.fail(std::string("indices are i32 or i64, not ") + to_string(dtype));
  if (dtype == DType::i32 && size > int64_t(std::numeric_limits<int32_t>::max()) + 1)
    call.fail("the indices of " + std::to_string(size) + " elements do not fit into i32; give i64 as their dtype");
}

/// argmax in i64: the first index of the maximum. NaN counts as the smallest value, as in the op.
static Tensor firstOfLargest(Call &call, const Tensor &x, int64_t axis) {
  auto compared = [&](ir::Predicate predicate, const Tensor &a, const Tensor &b) {
    auto attribute = ir::PredicateAttr::get(&call.graph.context, predicate);
    return call.emit<ir::CompareOp>({a, b}, call.attribute("predicate", attribute));
  };
  Tensor key = x;
  if (is_float(x.dtype()))
    key = call.emit<ir::WhereOp>(
        {compared(ir::Predicate::eq, x, x), x, call.literal(detail::rangeOf(x.dtype()).first, x)});
  NamedAttribute axes = call.list("axes", axis);
  Tensor largest = call.emit<ir::ReduceMaxOp>({key}, {axes, call.unit("keepdims")});
  Tensor isLargest = compared(ir::Predicate::eq, key, call.broadcast(largest, Call::shape(key)));
  RankedTensorType type = Call::type(x).clone(call.graph.elementType(DType::i64));
  Tensor place = call.iota(type, axis, 0, 1);
  Tensor behindAll = call.literal(0x1p52, place);
  return call.emit<ir::ReduceMinOp>({call.emit<ir::WhereOp>({isLargest, place, behindAll})}, axes);
}

Tensor argmax(Arg x, std::int64_t dim, bool keepdim, DType dtype) {
  Call call("argmax", x, Rows::merged);
  int64_t axis = call.axis(x.tensor, dim);
  detail::requireIndices(call, Call::shape(x.tensor)[axis], dtype);
  Tensor index = dtype == DType::i64 ? firstOfLargest(call, x.tensor, axis)
                                     : call.emit<ir::ArgMaxOp>({x.tensor}, call.integer("axis", axis));
  return keepdim ? unsqueeze(Arg(index, x.where), dim < 0 ? dim + Call::seenRank(x.tensor) : dim) : index;
}

template <class Op> static Tensor alongAxis(const char *name, const Arg &x, int64_t dim) {
  Call call(name, x, Rows::merged);
  call.requireFloat(x.tensor);
  return call.emit<Op>({x.tensor}, call.integer("axis", call.axis(x.tensor, dim)));
}

Tensor softmax(Arg x, std::int64_t dim) { return alongAxis<ir::SoftmaxOp>("softmax", x, dim); }
Tensor log_softmax(Arg x, std::int64_t dim) { return alongAxis<ir::LogSoftmaxOp>("log_softmax", x, dim); }

} // namespace sluice
