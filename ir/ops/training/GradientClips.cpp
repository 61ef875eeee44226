// Limits gradients between their computation and the updates: torch.nn.utils.clip_grad_*.
#include "ir/Dialect.h"
#include "ir/build/Node.h"

using namespace mlir;

namespace sluice::ir {

//===- clip_grad_norm_ --------------------------------------------------------------------------------------------===//

/// The sum of the squares.
Value ClipGradNormAttr::buildTerm(OpBuilder &builder, Location loc, Value gradient) const {
  Node g = widened(Node(builder, loc, gradient));
  return sum(g * g, llvm::to_vector(llvm::seq<int64_t>(0, g.type().getRank())));
}

// g * min(1, max_norm / (norm + 1e-6)), with the norm over all elements of all gradients. NaN if the norm is NaN, so
// errors stay visible.
Value ClipGradNormAttr::buildClipped(OpBuilder &builder, Location loc, Value gradient, Value sum) const {
  Node g = widened(Node(builder, loc, gradient)),
       norm = sqrt(castTo(Node(builder, loc, sum), g.type().getElementType()));
  Node scale = getMaxNorm().getValueAsDouble() / (norm + 1e-6);
  return g * expand(where(scale > 1.0, 1.0, scale), {}, g.type());
}

//===- clip_grad_value_ -------------------------------------------------------------------------------------------===//

Value ClipGradValueAttr::buildTerm(OpBuilder &, Location, Value) const { return {}; }

Value ClipGradValueAttr::buildClipped(OpBuilder &builder, Location loc, Value gradient, Value) const {
  Node g = widened(Node(builder, loc, gradient));
  double most = getClipValue().getValueAsDouble();
  Node below = where(g > most, most, g);
  return where(below < -most, -most, below);
}

} // namespace sluice::ir
