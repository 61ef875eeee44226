// The updates of optimizers, as plain elementwise ops that fuse with the producers of gradients. Values stored in
// two-byte types are computed in f32 and rounded once, at the end.
#include "ir/Dialect.h"
#include "ir/build/Node.h"

#include <cmath>

using namespace mlir;

namespace sluice::ir {

static bool isZero(FloatAttr value) { return value.getValue().isZero(); }
static double numberOf(FloatAttr value) { return value.getValueAsDouble(); }

namespace {

/// The update of one parameter: its values in the compute type, and scalars broadcast to them.
struct Update {
  Update(OpBuilder &builder, Location loc, Value parameter, Value gradient, Value lr)
      : stored(builder, loc, parameter), p(widened(stored)), g(widened(Node(builder, loc, gradient))),
        lr(castTo(Node(builder, loc, lr), p.type().getElementType())) {}

  Node slot(Value value) const { return widened(Node(*p.builder, p.loc, value)); }
  Node expanded(Node scalar) const { return expand(scalar, {}, p.type()); }

  /// The results, in their storage types.
  SmallVector<Value> results(ArrayRef<Node> nodes) const {
    return llvm::map_to_vector(nodes, [&](Node node) -> Value { return castTo(node, stored.type().getElementType()); });
  }

  Node stored, p, g, lr; ///< g: the gradient of the update
};

} // namespace

/// g + decay * p
static Node decayed(const Update &u, FloatAttr decay) { return isZero(decay) ? u.g : u.g + u.p * numberOf(decay); }

/// share * average + (1 - share) * value, like torch.lerp. All terms read `value`, with which they fuse.
static Node averaged(Node average, Node value, double share) {
  return share < 0.5 ? value + (average - value) * share : average + (value - average) * (1.0 - share);
}

/// share * average + (1 - share) * value^2. The square is scaled before its second factor, so that it overflows only if
/// the result does. A difference of squares would be inf - inf in all later steps.
static Node averagedSquare(Node average, Node value, double share) {
  return average * share + value * (1.0 - share) * value;
}

/// Whether this is the first step, for each element of `like`: compared once.
static Node isFirst(Value step, Node like) {
  Node taken(*like.builder, like.loc, step), first = taken == taken.like(0);
  return expand(first, {}, withElement(like.type(), first.type().getElementType()));
}

//===- SGD --------------------------------------------------------------------------------------------------------===//

SmallVector<StringRef> SgdAttr::getSlots() const {
  return isZero(getMomentum()) ? SmallVector<StringRef>{} : SmallVector<StringRef>{"momentum_buffer"};
}

/// In PyTorch's first step the gradient enters the buffer undampened.
bool SgdAttr::needsStep() const { return !isZero(getMomentum()) && !isZero(getDampening()); }

// torch.optim.SGD: d = g + weight_decay * p;  b = momentum * b + (1 - dampening) * d, but b = d at the first step;
// d = d + momentum * b with Nesterov, b otherwise;  p = p - lr * d.
SmallVector<Value> SgdAttr::buildUpdate(OpBuilder &builder, Location loc, Value parameter, Value gradient, Value lr,
                                        Value step, ValueRange slots) const {
  Update u(builder, loc, parameter, gradient, lr);
  Node d = decayed(u, getWeightDecay());
  SmallVector<Node> newSlots;
  if (!isZero(getMomentum())) {
    double momentum = numberOf(getMomentum()), dampening = numberOf(getDampening());
    Node buffer = u.slot(slots[0]) * momentum + (dampening == 0 ? d : d * (1.0 - dampening));
    if (needsStep())
      buffer = where(isFirst(step, u.p), d, buffer);
    newSlots.push_back(buffer);
    d = getNesterov() ? d + buffer * momentum : buffer;
  }
  newSlots.insert(newSlots.begin(), u.p - u.expanded(u.lr) * d);
  return u.results(newSlots);
}

//===- Adam -------------------------------------------------------------------------------------------------------===//

SmallVector<StringRef> AdamAttr::getSlots() const {
  SmallVector<StringRef> slots{"exp_avg", "exp_avg_sq"};
  if (getAmsgrad())
    slots.push_back("max_exp_avg_sq");
  return slots;
}

bool AdamAttr::needsStep() const { return true; }

/// 1 - beta^t over the earlier steps and this one, in the type of `like`. A difference would cancel, the more the
/// closer beta is to 1. With h = -t ln(beta) / 2 it is 2 tanh(h) / (1 + tanh(h)).
static Node biasCorrection(double beta, Value step, Node like) {
  if (beta == 0)
    return like.like(1.0);
  Node t = castTo(Node(*like.builder, like.loc, step) + 1.0, like.type().getElementType());
  Node h = tanh(t * (-0.5 * std::log(beta)));
  return h * 2.0 / (h + 1.0);
}

// torch.optim.Adam: d = g + weight_decay * p, or p = p * (1 - lr * weight_decay) if that is decoupled, as in AdamW;
// m = beta1 * m + (1 - beta1) * d;  v = beta2 * v + (1 - beta2) * d * d, of which AMSGrad takes the greatest so far;
// p = p - lr / (1 - beta1^t) * m / (sqrt(v) / sqrt(1 - beta2^t) + eps), where t is 1 in the first step.
SmallVector<Value> AdamAttr::buildUpdate(OpBuilder &builder, Location loc, Value parameter, Value gradient, Value lr,
                                         Value step, ValueRange slots) const {
  Update u(builder, loc, parameter, gradient, lr);
  bool decouples = getDecoupledWeightDecay() && !isZero(getWeightDecay());
  Node d = decouples ? u.g : decayed(u, getWeightDecay());
  Node p = decouples ? u.p * u.expanded(1.0 - u.lr * numberOf(getWeightDecay())) : u.p;
  double beta1 = numberOf(getBeta1()), beta2 = numberOf(getBeta2());
  Node m = averaged(u.slot(slots[0]), d, beta1), v = averagedSquare(u.slot(slots[1]), d, beta2), most = v;
  SmallVector<Node> nodes{m, v};
  if (getAmsgrad())
    nodes.push_back(most = max(u.slot(slots[2]), v));
  Node size = u.expanded(u.lr / biasCorrection(beta1, step, u.lr));
  Node deviation = sqrt(most) / u.expanded(sqrt(biasCorrection(beta2, step, u.lr)));
  nodes.insert(nodes.begin(), p - size * (m / (deviation + numberOf(getEps()))));
  return u.results(nodes);
}

//===- RMSprop ----------------------------------------------------------------------------------------------------===//

SmallVector<StringRef> RmsPropAttr::getSlots() const {
  SmallVector<StringRef> slots{"square_avg"};
  if (!isZero(getMomentum()))
    slots.push_back("momentum_buffer");
  if (getCentered())
    slots.push_back("grad_avg");
  return slots;
}

bool RmsPropAttr::needsStep() const { return false; }

// torch.optim.RMSprop: d = g + weight_decay * p; v = alpha * v + (1 - alpha) * d * d; if centered, a = alpha * a + (1 -
// alpha) * d and v - a * a replaces v; unlike in PyTorch, rounding cannot make it negative; d = d / (sqrt(v) + eps); b
// = momentum * b + d if there is momentum, d otherwise; p = p - lr * b.
SmallVector<Value> RmsPropAttr::buildUpdate(OpBuilder &builder, Location loc, Value parameter, Value gradient, Value lr,
                                            Value, ValueRange slots) const {
  Update u(builder, loc, parameter, gradient, lr);
  double alpha = numberOf(getAlpha());
  Node d = decayed(u, getWeightDecay()), v = averagedSquare(u.slot(slots.front()), d, alpha), variance = v;
  SmallVector<Node> nodes{v}, last;
  if (getCentered()) {
    Node a = averaged(u.slot(slots.back()), d, alpha);
    variance = max(v - a * a, v.like(0.0));
    last.push_back(a);
  }
  d = d / (sqrt(variance) + numberOf(getEps()));
  if (!isZero(getMomentum()))
    nodes.push_back(d = u.slot(slots[1]) * numberOf(getMomentum()) + d);
  nodes.append(last);
  nodes.insert(nodes.begin(), u.p - u.expanded(u.lr) * d);
  return u.results(nodes);
}

//===- averages ---------------------------------------------------------------------------------------------------===//

// torch.optim.swa_utils.AveragedModel, updated after each step, with the decay as in its get_ema_avg_fn.
Value EmaAttr::buildAverage(OpBuilder &builder, Location loc, Value average, Value parameter, Value step) const {
  Node stored(builder, loc, parameter), p = widened(stored);
  Node next = averaged(widened(Node(builder, loc, average)), p, numberOf(getDecay()));
  return castTo(where(isFirst(step, p), p, next), stored.type().getElementType());
}

} // namespace sluice::ir
