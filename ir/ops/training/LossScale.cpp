// The scale of the loss, as in torch.amp.GradScaler. An f16 gradient underflows to 0 below 2^-25. Multiplied with the
// largest power of two that its elements allow, fewer underflow.
#include "ir/Dialect.h"
#include "ir/build/Fold.h"
#include "ir/build/Node.h"

#include <limits>

using namespace mlir;

namespace sluice::ir {

LossScaleAttr LossScaleAttr::getDefault(MLIRContext *context) {
  Builder b(context);
  return get(context, b.getF64FloatAttr(65536), b.getF64FloatAttr(2), b.getF64FloatAttr(0.5), 2000);
}

/// A scale is stored in f32.
LogicalResult LossScaleAttr::verify(function_ref<InFlightDiagnostic()> emitError, FloatAttr initScale,
                                    FloatAttr growthFactor, FloatAttr backoffFactor, int64_t growthInterval) {
  double init = initScale.getValueAsDouble(), growth = growthFactor.getValueAsDouble(),
         backoff = backoffFactor.getValueAsDouble();
  if (!(init >= std::numeric_limits<float>::min() && init <= std::numeric_limits<float>::max()))
    return emitError() << "init_scale is a positive number that f32 holds, not " << init;
  if (!(growth >= 1 && growth < kInfinity))
    return emitError() << "growth_factor is a number from 1 on, not " << growth;
  if (!(backoff > 0 && backoff < 1))
    return emitError() << "backoff_factor is between 0 and 1, not " << backoff;
  if (growthInterval < 1 || growthInterval > INT32_MAX)
    return emitError() << "growth_interval is a number of steps, from 1 to 2^31 - 1, not " << growthInterval;
  return success();
}

// 0 times an element is 0, or NaN if the element is NaN or infinite; so is a sum of these, in any order. The absolute
// value is not linear, so partial gradients of replicas are reduced first: their sum may be infinite although no part
// is.
Value LossScaleAttr::buildTerm(OpBuilder &builder, Location loc, Value gradient) const {
  Node g = widened(Node(builder, loc, gradient));
  return sum(abs(g) * 0.0, llvm::to_vector(llvm::seq<int64_t>(0, g.type().getRank())));
}

Value LossScaleAttr::buildIsFinite(OpBuilder &builder, Location loc, Value sum) const {
  return Node(builder, loc, sum) == 0.0;
}

// The factor also depends on the decision, although nothing reads a product with 0. So it is available no earlier than
// the decision, and updates computed from it fuse with the selection of old or new values. Otherwise they would be
// stored before.
Value LossScaleAttr::buildUnscaled(OpBuilder &builder, Location loc, Value gradient, Value scale,
                                   Value isFinite) const {
  Node g = widened(Node(builder, loc, gradient)), finite(builder, loc, isFinite);
  Node inverse = 1.0 / castTo(Node(builder, loc, scale), g.type().getElementType());
  return g * expand(where(finite, inverse, 0.0), {}, g.type());
}

// PyTorch's _amp_update_scale_. After an overflow, the scale is multiplied by backoff_factor. After growth_interval
// steps without overflow, it is multiplied by growth_factor, unless the product is infinite.
std::pair<Value, Value> LossScaleAttr::buildNext(OpBuilder &builder, Location loc, Value scale, Value goodSteps,
                                                 Value isFinite) const {
  Node now(builder, loc, scale), finite(builder, loc, isFinite), good = Node(builder, loc, goodSteps) + 1.0;
  Node isLongAgo = good >= double(getGrowthInterval()), grown = now * getGrowthFactor().getValueAsDouble();
  Node next = where(isLongAgo, where(grown < kInfinity, grown, now), now);
  return {where(finite, next, now * getBackoffFactor().getValueAsDouble()),
          where(finite, where(isLongAgo, 0.0, good), 0.0)};
}

} // namespace sluice::ir
