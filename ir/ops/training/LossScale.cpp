// The scale of the loss, as torch.amp.GradScaler keeps it. A gradient of f16 is 0 below 2^-25; times a power of two that is
// as large as its largest elements allow, fewer of them are.
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

/// A scale is kept in f32.
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

// 0 times an element is 0, or no number if the element is none or infinite; so is a sum of these, in any order. Of the size of an
// element, which of all replicas none has a part of: their sum may be infinite where no part is.
Value LossScaleAttr::buildTerm(OpBuilder &builder, Location loc, Value gradient) const {
  Node g = widened(Node(builder, loc, gradient));
  return sum(abs(g) * 0.0, llvm::to_vector(llvm::seq<int64_t>(0, g.type().getRank())));
}

Value LossScaleAttr::buildIsFinite(OpBuilder &builder, Location loc, Value sum) const {
  return Node(builder, loc, sum) == 0.0;
}

// The factor is of the decision, too, though nobody reads what is multiplied with 0. So it is known no earlier, and updates that
// are made of it fuse with the choice between old and new values; they would else be stored before.
Value LossScaleAttr::buildUnscaled(OpBuilder &builder, Location loc, Value gradient, Value scale,
                                   Value isFinite) const {
  Node g = widened(Node(builder, loc, gradient)), finite(builder, loc, isFinite);
  Node inverse = 1.0 / castTo(Node(builder, loc, scale), g.type().getElementType());
  return g * expand(where(finite, inverse, 0.0), {}, g.type());
}

// PyTorch's _amp_update_scale_: after an overflow scale * backoff_factor; after growth_interval steps without one scale *
// growth_factor, unless that is infinite.
std::pair<Value, Value> LossScaleAttr::buildNext(OpBuilder &builder, Location loc, Value scale, Value goodSteps,
                                                 Value isFinite) const {
  Node now(builder, loc, scale), finite(builder, loc, isFinite), good = Node(builder, loc, goodSteps) + 1.0;
  Node isLongAgo = good >= double(getGrowthInterval()), grown = now * getGrowthFactor().getValueAsDouble();
  Node next = where(isLongAgo, where(grown < kInfinity, grown, now), now);
  return {where(finite, next, now * getBackoffFactor().getValueAsDouble()),
          where(finite, where(isLongAgo, 0.0, good), 0.0)};
}

} // namespace sluice::ir
