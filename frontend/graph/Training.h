// The validated arguments of `minimize`, as attributes.
#pragma once

#include "frontend/graph/Call.h"

namespace sluice::detail {

/// Names of parameters. `behind`: those that a loss depends on. `reached`: those of them that are trained, because they
/// require a gradient and a gradient reaches them.
struct TrainedParameters {
  std::vector<std::string> behind, reached;
};

struct Training {
  /// Fails at the call if a hyperparameter is invalid, or if the pattern of a group matches no parameter that the loss
  /// depends on.
  Training(const Call &call, const TrainedParameters &names, const optim::Optimizer &optimizer,
           const optim::Options &options);

  double lr;
  ir::OptimizerAttr optimizer;
  mlir::ArrayAttr parameters; ///< parameters without a group
  mlir::ArrayAttr groups, clips;
  ir::LrScheduleAttr schedule;
  ir::EmaAttr ema;
  ir::LossScaleAttr lossScale;
};

} // namespace sluice::detail
