// Losses and metrics. Where PyTorch has a dedicated op, this is a formula of ops; the compiler fuses the formula into
// kernels.
#include "frontend/ops/Reduce.h"

#include <cmath>

using namespace mlir;

namespace sluice {

using detail::Call;
using detail::compared;
using detail::reduce;
using detail::Rows;
using detail::widened;

static Tensor reduced(Call &call, const Tensor &losses, Reduction reduction) {
  switch (reduction) {
  case Reduction::mean:
    return reduce<ir::MeanOp>(call, losses);
  case Reduction::sum:
    return reduce<ir::SumOp>(call, losses);
  case Reduction::none:
    return losses;
  }
  llvm_unreachable("a Reduction beyond the enumeration");
}

static Tensor scaled(Call &call, const Tensor &x, double factor) {
  return call.emit<ir::MulOp>({x, call.literal(factor, x)});
}

/// Includes the weights only if given.
static SmallVector<Tensor> operandsOf(const Tensor &x, const Tensor &target, std::initializer_list<Tensor> weights) {
  SmallVector<Tensor> operands{x, target};
  llvm::append_range(operands, Call::present(weights));
  return operands;
}

//===- scores of classes ------------------------------------------------------------------------------------------===//

/// The dimension of the classes: of scores [N, C, ...] and [C].
static int64_t classAxis(const Call &call, const char *scores, const Tensor &x) {
  call.requireFloat(x);
  if (Call::rank(x) == 0)
    call.fail(std::string(scores) + " has no dimension of classes");
  int64_t axis = call.axis(x, Call::seenRank(x) > 1);
  if (ShapedType::isDynamic(Call::shape(x)[axis]))
    call.fail(std::string(scores) + " has the batch in dimension " + std::to_string(axis) + ", that of the classes");
  return axis;
}

static void requireShape(const Call &call, const char *operand, const Tensor &x, ArrayRef<int64_t> shape,
                         bool merged = false) {
  std::string needed = call.graph.printShape(Call::type(x).clone(shape), merged);
  if (call.print(x) != needed)
    call.fail(std::string(operand) + " needs the shape " + needed + ", not " + call.print(x));
}

/// Checks scores and integer labels [N, ...] or []; returns the class axis.
static int64_t requireLabels(const Call &call, const char *scores, const Tensor &x, const Tensor &label) {
  int64_t axis = classAxis(call, scores, x);
  if (label.dtype() != DType::i32 && label.dtype() != DType::i64)
    call.fail(std::string("labels are i32 or i64, not ") + to_string(label.dtype()));
  SmallVector<int64_t> others(Call::shape(x));
  others.erase(others.begin() + axis);
  requireShape(call, "label", label, others, detail::Access::isMerged(x));
  return axis;
}

namespace {

/// The class of each position, and its weight.
struct Labels {
  Tensor label;  ///< -1 if ignored
  Tensor counts; ///< bool: false if ignored; empty: all count
  Tensor weight; ///< weight of the label's class; empty: 1
};

} // namespace

static Tensor withoutIgnored(Call &call, const Tensor &label, int64_t classes, int64_t ignored) {
  if (!llvm::isInt<32>(ignored))
    call.fail("ignore_index is a number of 32 bits, not " + std::to_string(ignored));
  return call.emit<ir::IgnoreIndexOp>({label}, {call.integer("size", classes), call.integer("ignored", ignored)});
}

static void requireWeight(const Call &call, const Tensor &x, int64_t axis, const Tensor &weight) {
  call.requireSameDType(x, weight);
  requireShape(call, "weight", weight, Call::shape(x)[axis]);
}

static Labels labelsOf(Call &call, const char *scores, const Tensor &x, const Tensor &label, const Tensor &weight,
                       std::optional<int64_t> ignored) {
  int64_t axis = requireLabels(call, scores, x, label);
  Labels labels{label, {}, {}};
  if (ignored) {
    labels.label = withoutIgnored(call, label, Call::shape(x)[axis], *ignored);
    labels.counts = compared(call, ir::Predicate::ge, labels.label, call.literal(0, label));
  }
  if (weight) {
    requireWeight(call, x, axis, weight);
    Tensor fixed = call.emit<ir::StopGradientOp>({weight});
    labels.weight = call.emit<ir::GatherOp>({fixed, labels.label}, call.integer("axis", 0));
  }
  return labels;
}

/// Whether a score belongs to the label's class: bool of x's shape.
static Tensor isLabel(Call &call, const Tensor &label, const Tensor &x, int64_t axis) {
  auto to = TypeAttr::get(call.graph.elementType(DType::boolean));
  Tensor last =
      call.emit<ir::OneHotOp>({label}, {call.integer("classes", Call::shape(x)[axis]), call.attribute("to", to)});
  SmallVector<int64_t> order = llvm::to_vector(llvm::seq<int64_t>(0, Call::rank(x) - 1));
  order.insert(order.begin() + axis, Call::rank(x) - 1);
  return call.permute(last, order);
}

/// The sum over one dimension of the value.
static Tensor lineSum(Call &call, const Tensor &x, int64_t axis) {
  return call.emit<ir::SumOp>({x}, call.list("axes", axis));
}

/// x where the position counts; 0 elsewhere.
static Tensor counting(Call &call, const Labels &labels, const Tensor &x) {
  return labels.counts ? call.emit<ir::WhereOp>({labels.counts, x, call.literal(0, x)}) : x;
}

/// The sum of losses divided by the sum of weights, which depends on data only; with replicas, the sum over all
/// replicas. Halves are summed and divided in f32.
static Tensor meanByWeight(Call &call, const Tensor &losses, const Tensor &weights) {
  Tensor total = reduce<ir::SumOp>(call, widened(call, losses)),
         count = reduce<ir::SumOp>(call, call.cast(weights, total.dtype()));
  return call.cast(call.emit<ir::DivOp>({total, count}), losses.dtype());
}

/// PyTorch's reduction of weighted losses.
static Tensor reduced(Call &call, const Tensor &weighted, const Labels &labels, Reduction reduction) {
  Tensor losses = counting(call, labels, weighted);
  bool allCount = !bool(labels.counts) && !bool(labels.weight);
  if (reduction != Reduction::mean || allCount)
    return reduced(call, losses, reduction);
  return meanByWeight(call, losses, labels.weight ? counting(call, labels, labels.weight) : labels.counts);
}

static Tensor weighted(Call &call, const Tensor &losses, const Labels &labels) {
  return labels.weight ? call.emit<ir::MulOp>({losses, labels.weight}) : losses;
}

//===- cross-entropy ----------------------------------------------------------------------------------------------===//

template <class Op> static Tensor crossEntropies(Call &call, const Tensor &logits, const Tensor &target, int64_t axis) {
  SmallVector<NamedAttribute> attributes;
  if (axis != 1)
    attributes.push_back(call.integer("axis", axis));
  return call.emit<Op>({logits, target}, attributes);
}

static void requireSmoothing(const Call &call, double smoothing) {
  if (!(smoothing >= 0 && smoothing <= 1))
    call.fail("label_smoothing is between 0 and 1, not " + std::to_string(smoothing));
}

/// Targets times the weights of their classes.
static Tensor weightedShares(Call &call, const Tensor &target, const Tensor &weight, int64_t axis) {
  if (!bool(weight))
    return target;
  Tensor fixed = call.emit<ir::StopGradientOp>({weight});
  return call.emit<ir::MulOp>({target, call.expand(fixed, {axis}, Call::shape(target))});
}

static Tensor ofShares(Call &call, const Tensor &logits, const Tensor &target, const CrossEntropyOptions &options) {
  int64_t axis = classAxis(call, "logits", logits);
  call.requireSameDType(logits, target);
  requireShape(call, "target", target, Call::shape(logits), detail::Access::isMerged(logits));
  if (options.ignore_index)
    call.fail("ignore_index is a label, and the target has shares of the classes");
  if (options.weight)
    requireWeight(call, logits, axis, options.weight);
  Tensor shares = target;
  if (double smoothing = options.label_smoothing; smoothing != 0) {
    Tensor equal = call.literal(smoothing / double(Call::shape(logits)[axis]), target);
    shares = call.emit<ir::AddOp>({scaled(call, target, 1 - smoothing), equal});
  }
  shares = weightedShares(call, shares, options.weight, axis);
  return reduced(call, crossEntropies<ir::SoftCrossEntropyOp>(call, logits, shares, axis), options.reduction);
}

/// The losses of labels times (1 - smoothing), plus a uniform share for all classes. Two separate sums, as in PyTorch,
/// so that no target of the logits' size is stored.
static Tensor smoothed(Call &call, const Tensor &ofLabels, const Tensor &logits, const Tensor &weight, int64_t axis,
                       double smoothing) {
  if (smoothing == 0)
    return ofLabels;
  Tensor shares = weightedShares(call, call.literal(1, logits), weight, axis),
         ofAll = crossEntropies<ir::SoftCrossEntropyOp>(call, logits, shares, axis);
  double each = smoothing / double(Call::shape(logits)[axis]);
  return call.emit<ir::AddOp>({scaled(call, ofLabels, 1 - smoothing), scaled(call, ofAll, each)});
}

Tensor cross_entropy(Arg logits, const Tensor &target, CrossEntropyOptions options) {
  const Tensor &x = logits.tensor;
  Call call("cross_entropy", operandsOf(x, target, {options.weight}), logits.where, Rows::merged);
  requireSmoothing(call, options.label_smoothing);
  if (is_float(target.dtype()))
    return ofShares(call, x, target, options);
  Labels labels = labelsOf(call, "logits", x, target, options.weight, options.ignore_index);
  int64_t axis = classAxis(call, "logits", x);
  Tensor picked = weighted(call, crossEntropies<ir::SoftmaxCrossEntropyOp>(call, x, labels.label, axis), labels);
  Tensor losses = smoothed(call, picked, x, options.weight, axis, options.label_smoothing);
  return reduced(call, losses, labels, options.reduction);
}

Tensor cross_entropy(Arg logits, const Tensor &target, Reduction reduction) {
  return cross_entropy(logits, target, CrossEntropyOptions{.reduction = reduction});
}

Tensor nll_loss(Arg log_probabilities, const Tensor &label, NllLossOptions options) {
  const Tensor &x = log_probabilities.tensor;
  Call call("nll_loss", operandsOf(x, label, {options.weight}), log_probabilities.where, Rows::merged);
  Labels labels = labelsOf(call, "log_probabilities", x, label, options.weight, options.ignore_index);
  int64_t axis = classAxis(call, "log_probabilities", x);
  // Selects with `where`. A product with 0 and 1 would fail because probabilities of 0 are -infinity here.
  Tensor chosen = call.emit<ir::WhereOp>({isLabel(call, labels.label, x, axis), x, call.literal(0.0, x)});
  Tensor losses = call.emit<ir::NegOp>({lineSum(call, chosen, axis)});
  return reduced(call, weighted(call, losses, labels), labels, options.reduction);
}

Tensor nll_loss(Arg log_probabilities, const Tensor &label, Reduction reduction) {
  return nll_loss(log_probabilities, label, NllLossOptions{.reduction = reduction});
}

Tensor binary_cross_entropy_with_logits(Arg logits, const Tensor &target, BinaryCrossEntropyOptions options) {
  const Tensor &x = logits.tensor;
  SmallVector<Tensor> operands = operandsOf(x, target, {options.weight, options.pos_weight});
  Call call("binary_cross_entropy_with_logits", operands, logits.where, Rows::merged);
  call.requireFloat(x);
  for (const Tensor &operand : ArrayRef(operands).drop_front())
    call.requireSameDType(x, operand);
  requireShape(call, "target", target, Call::shape(x), detail::Access::isMerged(x));
  auto spread = [&](const char *name, const Tensor &given) {
    Tensor weight = call.beside(x, given);
    if (ArrayRef(call.commonShape(Call::shape(x), Call::shape(weight))) != Call::shape(x))
      call.fail(std::string(name) + " " + call.print(weight) + " does not broadcast to " + call.print(x));
    return call.broadcast(weight, Call::shape(x));
  };
  Tensor one = call.literal(1, x), rest = call.emit<ir::MulOp>({call.emit<ir::SubOp>({one, target}), x}),
         softplus = call.emit<ir::SoftplusOp>({call.emit<ir::NegOp>({x})});
  if (options.pos_weight) {
    Tensor beyond = call.emit<ir::SubOp>({spread("pos_weight", options.pos_weight), one});
    softplus = call.emit<ir::MulOp>({call.emit<ir::AddOp>({one, call.emit<ir::MulOp>({beyond, target})}), softplus});
  }
  Tensor losses = call.emit<ir::AddOp>({rest, softplus});
  if (options.weight)
    losses = call.emit<ir::MulOp>({losses, spread("weight", options.weight)});
  return reduced(call, losses, options.reduction);
}

//===- differences ------------------------------------------------------------------------------------------------===//

/// x - target, which must have the same shape.
static Tensor difference(Call &call, const Tensor &x, const Tensor &target) {
  call.requireFloat(x);
  call.requireSameDType(x, target);
  if (call.print(x) != call.print(target))
    call.fail("shapes differ: " + call.print(x) + " and " + call.print(target));
  return call.emit<ir::SubOp>({x, target});
}

Tensor mse_loss(Arg x, const Tensor &target, Reduction reduction) {
  Call call("mse_loss", x, target, Rows::merged);
  Tensor squares = call.emit<ir::SquareOp>({widened(call, difference(call, x.tensor, target))});
  return call.cast(reduced(call, squares, reduction), x.tensor.dtype());
}

Tensor l1_loss(Arg x, const Tensor &target, Reduction reduction) {
  Call call("l1_loss", x, target, Rows::merged);
  return reduced(call, call.emit<ir::AbsOp>({difference(call, x.tensor, target)}), reduction);
}

/// `factor` times d^2 / 2 where |d| < border, and `factor` times border * (|d| - border / 2) elsewhere. Far from 0, the
/// unused square is that of 0 instead of d, because an infinite square would have the gradient 0 * infinity.
static Tensor squaredNearZero(Call &call, const Tensor &d, double border, double factor) {
  Tensor distance = call.emit<ir::AbsOp>({d});
  Tensor isFar = compared(call, ir::Predicate::ge, distance, call.literal(border, d));
  Tensor near = call.emit<ir::WhereOp>({isFar, call.literal(0.0, d), d});
  Tensor square = scaled(call, call.emit<ir::SquareOp>({near}), 0.5 * factor);
  Tensor beyond = call.emit<ir::SubOp>({distance, call.literal(0.5 * border, d)});
  return call.emit<ir::WhereOp>({isFar, scaled(call, beyond, border * factor), square});
}

/// The loss that applies `squaredNearZero` to the difference.
static Tensor roundedLoss(Call &call, const Tensor &x, const Tensor &target, Reduction reduction, double border,
                          double factor) {
  Tensor losses = squaredNearZero(call, widened(call, difference(call, x, target)), border, factor);
  return call.cast(reduced(call, losses, reduction), x.dtype());
}

Tensor huber_loss(Arg x, const Tensor &target, Reduction reduction, double delta) {
  Call call("huber_loss", x, target, Rows::merged);
  if (!(delta > 0 && std::isfinite(delta)))
    call.fail("delta is positive, not " + std::to_string(delta));
  return roundedLoss(call, x.tensor, target, reduction, delta, 1);
}

Tensor smooth_l1_loss(Arg x, const Tensor &target, Reduction reduction, double beta) {
  Call call("smooth_l1_loss", x, target, Rows::merged);
  if (!(beta >= 0 && std::isfinite(beta)))
    call.fail("beta is not negative, and not " + std::to_string(beta));
  if (beta == 0)
    return reduced(call, call.emit<ir::AbsOp>({difference(call, x.tensor, target)}), reduction);
  return roundedLoss(call, x.tensor, target, reduction, beta, 1 / beta);
}

//===- metrics ----------------------------------------------------------------------------------------------------===//

/// The fraction of counted positions where the condition holds.
static Tensor shareOf(Call &call, const Tensor &condition, const Labels &labels, DType dtype) {
  return reduced(call, call.cast(condition, dtype), labels, Reduction::mean);
}

Tensor accuracy(Arg logits, const Tensor &label, std::optional<std::int64_t> ignore_index) {
  const Tensor &x = logits.tensor;
  Call call("accuracy", logits, label, Rows::merged);
  Labels labels = labelsOf(call, "logits", x, label, /*weight=*/{}, ignore_index);
  Tensor best = call.emit<ir::ArgMaxOp>({x}, call.integer("axis", classAxis(call, "logits", x)));
  Tensor isRight = compared(call, ir::Predicate::eq, call.cast(best, label.dtype()), labels.label);
  return shareOf(call, isRight, labels, x.dtype());
}

Tensor top_k_accuracy(Arg logits, const Tensor &label, std::int64_t k, std::optional<std::int64_t> ignore_index) {
  const Tensor &x = logits.tensor;
  Call call("top_k_accuracy", logits, label, Rows::merged);
  Labels labels = labelsOf(call, "logits", x, label, /*weight=*/{}, ignore_index);
  int64_t axis = classAxis(call, "logits", x), classes = Call::shape(x)[axis];
  if (k < 1 || k > classes)
    call.fail("k is from 1 to the number of classes, " + std::to_string(classes) + ", not " + std::to_string(k));
  SmallVector<int64_t> others = llvm::to_vector(llvm::seq<int64_t>(0, Call::rank(x)));
  others.erase(others.begin() + axis);
  Tensor chosen = call.emit<ir::WhereOp>({isLabel(call, labels.label, x, axis), x, call.literal(0.0, x)});
  Tensor score = call.expand(lineSum(call, chosen, axis), others, Call::shape(x));
  // Uses "not less than", so that NaN scores count as failures.
  Tensor rivals = call.emit<ir::NotOp>({compared(call, ir::Predicate::lt, x, score)});
  Tensor rank = lineSum(call, call.cast(rivals, DType::i32), axis);
  return shareOf(call, compared(call, ir::Predicate::le, rank, call.literal(double(k), rank)), labels, x.dtype());
}

} // namespace sluice
