// Reductions, softmax, losses and metrics.
#include "Call.h"

using namespace mlir;

namespace sluice {

using detail::Call;

//===- reductions -------------------------------------------------------------------------------------------------===//

template <class Op> static Tensor reduce(Call &call, const Tensor &x, const Axes &dims, bool keepdim) {
  if (x.dtype() == DType::boolean)
    call.fail("works on numbers, not bool; convert with .to(f32)");
  SmallVector<NamedAttribute> attributes{call.list("axes", call.axes(x, dims))};
  if (keepdim)
    attributes.push_back(call.unit("keepdims"));
  return call.emit<Op>({x}, attributes);
}

static Tensor meanOver(Call &call, const Tensor &x, const Axes &dims, bool keepdim) {
  call.requireFloat(x);
  return reduce<ir::MeanOp>(call, x, dims, keepdim);
}

/// Of integers and bool, as i64.
static Tensor wide(Call &call, const Tensor &x) { return is_float(x.dtype()) ? x : call.cast(x, DType::i64); }

Tensor sum(Arg x, Axes dim, bool keepdim) {
  Call call("sum", x);
  return reduce<ir::SumOp>(call, wide(call, x.tensor), dim, keepdim);
}
Tensor mean(Arg x, Axes dim, bool keepdim) {
  Call call("mean", x);
  return meanOver(call, x.tensor, dim, keepdim);
}
Tensor max(Arg x, Axes dim, bool keepdim) {
  Call call("max", x);
  return reduce<ir::ReduceMaxOp>(call, x.tensor, dim, keepdim);
}
Tensor min(Arg x, Axes dim, bool keepdim) {
  Call call("min", x);
  return reduce<ir::ReduceMinOp>(call, x.tensor, dim, keepdim);
}

Tensor prod(Arg x, Axes dim, bool keepdim) {
  Call call("prod", x);
  return reduce<ir::ProdOp>(call, wide(call, x.tensor), dim, keepdim);
}

template <class Op> static Tensor reduceTruth(const char *name, const Arg &x, const Axes &dims, bool keepdim) {
  Call call(name, x);
  Tensor truth = call.cast(call.cast(x.tensor, DType::boolean), DType::u8);
  return call.cast(reduce<Op>(call, truth, dims, keepdim), DType::boolean);
}

Tensor any(Arg x, Axes dim, bool keepdim) { return reduceTruth<ir::ReduceMaxOp>("any", x, dim, keepdim); }
Tensor all(Arg x, Axes dim, bool keepdim) { return reduceTruth<ir::ReduceMinOp>("all", x, dim, keepdim); }

//===- statistics -------------------------------------------------------------------------------------------------===//

/// Repeats a reduction's result, which kept its dimensions, to the shape of x.
static Tensor repeated(Call &call, const Tensor &kept, const Tensor &x) { return call.broadcast(kept, Call::shape(x)); }

// No gradient reaches the mean: where it moves, the sum of squares does not, as differences from it add up to 0.
static Tensor variance(Call &call, const Tensor &x, const Axes &dims, int64_t correction, bool keepdim) {
  call.requireFloat(x);
  int64_t count = 1;
  for (int64_t axis : call.axes(x, dims)) {
    if (ShapedType::isDynamic(Call::shape(x)[axis]))
      call.fail("would be that of the rows of a call, of which batch_norm alone takes one");
    count *= Call::shape(x)[axis];
  }
  if (correction < 0 || correction >= count)
    call.fail("correction is from 0 to below the number of elements, " + std::to_string(count) + ", not " +
              std::to_string(correction));
  Tensor mean = call.emit<ir::StopGradientOp>({meanOver(call, x, dims, true)});
  Tensor centred = call.emit<ir::SubOp>({x, repeated(call, mean, x)});
  Tensor squares = reduce<ir::SumOp>(call, call.emit<ir::SquareOp>({centred}), dims, keepdim);
  return call.emit<ir::DivOp>({squares, call.literal(double(count - correction), squares)});
}

Tensor var(Arg x, Axes dim, std::int64_t correction, bool keepdim) {
  Call call("var", x);
  return variance(call, x.tensor, dim, correction, keepdim);
}

Tensor std(Arg x, Axes dim, std::int64_t correction, bool keepdim) {
  Call call("std", x);
  return call.emit<ir::SqrtOp>({variance(call, x.tensor, dim, correction, keepdim)});
}

// Less the maximum, so that no power of e is too large; less nothing where that is infinite.
Tensor logsumexp(Arg x, Axes dim, bool keepdim) {
  Call call("logsumexp", x);
  call.requireFloat(x.tensor);
  Tensor largest = reduce<ir::ReduceMaxOp>(call, x.tensor, dim, true);
  Tensor shift = call.emit<ir::StopGradientOp>(
      {call.emit<ir::WhereOp>({call.emit<ir::IsInfOp>({largest}), call.literal(0.0, largest), largest})});
  Tensor powers = call.emit<ir::ExpOp>({call.emit<ir::SubOp>({x.tensor, repeated(call, shift, x.tensor)})});
  Tensor total = call.emit<ir::LogOp>({reduce<ir::SumOp>(call, powers, dim, keepdim)});
  return call.emit<ir::AddOp>({total, call.reshape(shift, Call::shape(total))});
}

static Tensor argmaxAlong(Call &call, const Tensor &x, int64_t axis) {
  return call.emit<ir::ArgMaxOp>({x}, call.integer("axis", axis));
}

Tensor argmax(Arg x, std::int64_t dim, bool keepdim) {
  Call call("argmax", x);
  int64_t axis = call.axis(x.tensor, dim);
  Tensor index = argmaxAlong(call, x.tensor, axis);
  return keepdim ? unsqueeze(Arg(index, x.where), axis) : index;
}

template <class Op> static Tensor alongAxis(const char *name, const Arg &x, int64_t dim) {
  Call call(name, x);
  call.requireFloat(x.tensor);
  return call.emit<Op>({x.tensor}, call.integer("axis", call.axis(x.tensor, dim)));
}

Tensor softmax(Arg x, std::int64_t dim) { return alongAxis<ir::SoftmaxOp>("softmax", x, dim); }
Tensor log_softmax(Arg x, std::int64_t dim) { return alongAxis<ir::LogSoftmaxOp>("log_softmax", x, dim); }

//===- losses -----------------------------------------------------------------------------------------------------===//

static Tensor reduced(Call &call, const Tensor &losses, Reduction reduction) {
  switch (reduction) {
  case Reduction::mean:
    return meanOver(call, losses, {}, false);
  case Reduction::sum:
    return reduce<ir::SumOp>(call, losses, {}, false);
  case Reduction::none:
    return losses;
  }
  llvm_unreachable("a Reduction beyond the enumeration");
}

static bool isInteger(DType dtype) { return dtype == DType::i32 || dtype == DType::i64; }

/// scores [N, C] and integer labels [N].
static void requireLabels(const Call &call, const char *scores, const Tensor &x, const Tensor &label) {
  call.requireFloat(x);
  call.requireRank(scores, x, 2);
  if (!isInteger(label.dtype()))
    call.fail(std::string("labels are i32 or i64, not ") + to_string(label.dtype()));
  call.requireRank("label", label, 1);
  if (Call::shape(x)[0] != Call::shape(label)[0])
    call.fail(std::string(scores) + " and label differ in rows: " + call.print(Call::shape(x)[0]) + " and " +
              call.print(Call::shape(label)[0]));
}

Tensor cross_entropy(Arg logits, const Tensor &label, Reduction reduction) {
  Call call("cross_entropy", logits, label);
  requireLabels(call, "logits", logits.tensor, label);
  return reduced(call, call.emit<ir::SoftmaxCrossEntropyOp>({logits.tensor, label}), reduction);
}

Tensor one_hot(Arg label, std::int64_t classes, DType dtype) {
  Call call("one_hot", label);
  if (!isInteger(label.tensor.dtype()))
    call.fail(std::string("labels are i32 or i64, not ") + to_string(label.tensor.dtype()));
  if (classes <= 0)
    call.fail("the number of classes is positive, not " + std::to_string(classes));
  auto to = TypeAttr::get(call.graph.elementType(dtype));
  return call.emit<ir::OneHotOp>({label.tensor}, {call.integer("classes", classes), call.attribute("to", to)});
}

Tensor nll_loss(Arg log_probabilities, const Tensor &label, Reduction reduction) {
  const Tensor &x = log_probabilities.tensor;
  Call call("nll_loss", log_probabilities, label);
  requireLabels(call, "log_probabilities", x, label);
  // Chosen by a condition and not by a product with 0 and 1: probabilities of 0 are -infinity here.
  Tensor isLabel = one_hot(Arg(label, log_probabilities.where), Call::shape(x)[1], DType::boolean);
  Tensor chosen = call.emit<ir::WhereOp>({isLabel, x, call.literal(0.0, x)});
  return reduced(call, call.emit<ir::NegOp>({reduce<ir::SumOp>(call, chosen, 1, false)}), reduction);
}

Tensor mse_loss(Arg x, const Tensor &target, Reduction reduction) {
  Call call("mse_loss", x, target);
  call.requireFloat(x.tensor);
  call.requireSameDType(x.tensor, target);
  if (Call::shape(x.tensor) != Call::shape(target))
    call.fail("shapes differ: " + call.print(x.tensor) + " and " + call.print(target));
  return reduced(call, call.emit<ir::SquareOp>({call.emit<ir::SubOp>({x.tensor, target})}), reduction);
}

Tensor accuracy(Arg logits, const Tensor &label) {
  Call call("accuracy", logits, label);
  requireLabels(call, "logits", logits.tensor, label);
  Tensor best = call.cast(argmaxAlong(call, logits.tensor, 1), label.dtype());
  auto equal = ir::PredicateAttr::get(&call.graph.context, ir::Predicate::eq);
  Tensor right = call.emit<ir::CompareOp>({best, label}, call.attribute("predicate", equal));
  return meanOver(call, call.cast(right, logits.tensor.dtype()), {}, false);
}

} // namespace sluice
