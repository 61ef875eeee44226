// Learning rates as functions of the optimizer's step: the closed forms of torch.optim.lr_scheduler.
#include "ir/Dialect.h"
#include "ir/build/Node.h"

#include <numbers>

using namespace mlir;

namespace sluice::ir {

using EmitError = function_ref<InFlightDiagnostic()>;

static LogicalResult requirePositive(EmitError emitError, const char *what, int64_t steps) {
  if (steps < 1 || steps > INT32_MAX)
    return emitError() << what << " is a number of steps, from 1 to 2^31 - 1, not " << steps;
  return success();
}

/// The number of earlier steps, in the type of the rate.
static Node stepsAs(Node lr, Value step) { return castTo(Node(*lr.builder, lr.loc, step), lr.type().getElementType()); }

//===- StepLR -----------------------------------------------------------------------------------------------------===//

LogicalResult StepLrAttr::verify(EmitError emitError, int64_t stepSize, FloatAttr) {
  return requirePositive(emitError, "step_size", stepSize);
}

// lr * gamma^floor(step / step_size)
Value StepLrAttr::buildRate(OpBuilder &builder, Location loc, Value lr, Value step) const {
  Node base(builder, loc, lr), times = Node(builder, loc, step) / double(getStepSize());
  return base * pow(base.like(getGamma().getValueAsDouble()), stepsAs(base, times));
}

//===- LinearLR ---------------------------------------------------------------------------------------------------===//

LogicalResult LinearLrAttr::verify(EmitError emitError, FloatAttr, FloatAttr, int64_t totalIters) {
  return requirePositive(emitError, "total_iters", totalIters);
}

// lr * (start_factor + (end_factor - start_factor) * min(step, total_iters) / total_iters)
Value LinearLrAttr::buildRate(OpBuilder &builder, Location loc, Value lr, Value step) const {
  double start = getStartFactor().getValueAsDouble(), total = double(getTotalIters());
  Node base(builder, loc, lr), t = stepsAs(base, step);
  return base * (where(t < total, t, total) * ((getEndFactor().getValueAsDouble() - start) / total) + start);
}

//===- CosineAnnealingLR ------------------------------------------------------------------------------------------===//

LogicalResult CosineAnnealingLrAttr::verify(EmitError emitError, int64_t most, FloatAttr) {
  return requirePositive(emitError, "T_max", most);
}

// eta_min + (lr - eta_min) * (1 + cos(pi * step / T_max)) / 2: after T_max it rises again.
Value CosineAnnealingLrAttr::buildRate(OpBuilder &builder, Location loc, Value lr, Value step) const {
  Node base(builder, loc, lr), wave = cos(stepsAs(base, step) * (std::numbers::pi / double(getTMax())));
  Node least = base.like(getEtaMin().getValueAsDouble());
  return least + (base - least) * ((wave + 1.0) * 0.5);
}

//===- SequentialLR -----------------------------------------------------------------------------------------------===//

LogicalResult SequentialLrAttr::verify(EmitError emitError, ArrayAttr schedulers, DenseI64ArrayAttr milestones) {
  for (Attribute scheduler : schedulers)
    if (!llvm::isa<LrScheduleAttr>(scheduler))
      return emitError() << "names no schedule: " << scheduler;
  if (schedulers.size() != size_t(milestones.size()) + 1)
    return emitError() << "has " << milestones.size() << " milestones between " << schedulers.size() << " schedules";
  int64_t last = 0;
  for (int64_t milestone : milestones.asArrayRef()) {
    if (milestone <= last)
      return emitError() << "has a milestone " << milestone << " that is not after " << last;
    if (failed(requirePositive(emitError, "a milestone", milestone)))
      return failure();
    last = milestone;
  }
  return success();
}

Value SequentialLrAttr::buildRate(OpBuilder &builder, Location loc, Value lr, Value step) const {
  Node taken(builder, loc, step);
  auto rateOf = [&](size_t number, Node t) {
    return Node(builder, loc, llvm::cast<LrScheduleAttr>(getSchedulers()[number]).buildRate(builder, loc, lr, t));
  };
  Node rate = rateOf(0, taken);
  for (auto [i, milestone] : llvm::enumerate(getMilestones().asArrayRef()))
    rate = where(taken >= double(milestone), rateOf(i + 1, taken - double(milestone)), rate);
  return rate;
}

} // namespace sluice::ir
