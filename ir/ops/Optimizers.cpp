// The updates of optimizers, as plain elementwise ops that fuse with the gradients they consume.
#include "ir/Dialect.h"
#include "ir/build/Node.h"

using namespace mlir;

namespace sluice::ir {

static bool isZero(FloatAttr value) { return value.getValue().isZero(); }

SmallVector<StringRef> SgdAttr::getSlots() const {
  return isZero(getMomentum()) ? SmallVector<StringRef>{} : SmallVector<StringRef>{"momentum_buffer"};
}

/// PyTorch's first step takes the gradient undampened into the buffer.
bool SgdAttr::needsStep() const { return !isZero(getMomentum()) && !isZero(getDampening()); }

// torch.optim.SGD: d = g + weight_decay * p;  b = momentum * b + (1 - dampening) * d, but b = d at the first step;
// d = d + momentum * b with Nesterov, b otherwise;  p = p - lr * d. What is stored as halves is rounded at the end, once.
SmallVector<Value> SgdAttr::buildUpdate(OpBuilder &builder, Location loc, Value parameter, Value gradient, Value lr,
                                        Value step, ValueRange slots) const {
  Node stored(builder, loc, parameter), p = widened(stored), d = widened(Node(builder, loc, gradient));
  Type element = p.type().getElementType();
  if (!isZero(getWeightDecay()))
    d = d + p * getWeightDecay().getValueAsDouble();
  SmallVector<Value> newSlots;
  if (!isZero(getMomentum())) {
    double momentum = getMomentum().getValueAsDouble(), dampening = getDampening().getValueAsDouble();
    Node buffer = widened(Node(builder, loc, slots[0])) * momentum + (dampening == 0 ? d : d * (1.0 - dampening));
    if (needsStep()) {
      Node first = expand(Node(builder, loc, step), {},
                          withElement(p.type(), llvm::cast<RankedTensorType>(step.getType()).getElementType()));
      buffer = where(first == first.like(0), d, buffer);
    }
    newSlots.push_back(buffer);
    d = getNesterov() ? d + buffer * momentum : buffer;
  }
  Node rate = castTo(Node(builder, loc, lr), element);
  SmallVector<Value> results{p - expand(rate, {}, p.type()) * d};
  llvm::append_range(results, newSlots);
  for (Value &result : results)
    result = castTo(Node(builder, loc, result), stored.type().getElementType());
  return results;
}

} // namespace sluice::ir
