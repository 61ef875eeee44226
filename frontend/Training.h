// What `minimize` is told, checked, as attributes.
#pragma once

#include "Call.h"

namespace sluice::detail {

struct Training {
  /// Fails at the call where numbers make no sense, or groups do not fit `names`: the parameters to train.
  Training(const Call &call, const std::vector<std::string> &names, const optim::Optimizer &optimizer,
           const optim::Options &options);

  double lr;
  ir::OptimizerAttr optimizer;
  mlir::ArrayAttr parameters; ///< those of no group
  mlir::ArrayAttr groups, clips;
  ir::LrScheduleAttr schedule;
  ir::EmaAttr ema;
  ir::LossScaleAttr lossScale;
};

} // namespace sluice::detail
