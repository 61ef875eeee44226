// Optimizers: what `Graph::minimize` takes. Names, numbers and defaults are those of torch.optim.
#pragma once

#include "sluice/language.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace sluice::optim {

// The learning rate of each is a state of the program, settable at run time (`--set lr=0.1`).

struct SGD {
  double lr = 1e-3, momentum = 0, dampening = 0, weight_decay = 0;
  bool nesterov = false;
};

/// Its decay of weights is part of the gradient; AdamW's is not.
struct Adam {
  double lr = 1e-3;
  std::pair<double, double> betas = {0.9, 0.999};
  double eps = 1e-8, weight_decay = 0;
  bool amsgrad = false;
};

struct AdamW {
  double lr = 1e-3;
  std::pair<double, double> betas = {0.9, 0.999};
  double eps = 1e-8, weight_decay = 1e-2;
  bool amsgrad = false;
};

struct RMSprop {
  double lr = 1e-2, alpha = 0.99, eps = 1e-8, weight_decay = 0, momentum = 0;
  bool centered = false;
};

using Optimizer = std::variant<SGD, Adam, AdamW, RMSprop>;

/// Parameters that are trained otherwise than the rest. Biases and norms, say, without decay:
///
///     {.params = {"*.bias", "*norm*"}, .weight_decay = 0}
struct Group {
  /// Names of parameters; '*' stands for any characters. A parameter is in one group at most.
  std::vector<std::string> params;
  /// The learning rate of the group is `lr` times this factor; the schedule is applied to the product. As in PyTorch, 0
  /// does not freeze parameters if the schedule adds a term, such as `eta_min` of CosineAnnealingLR. The factor does
  /// not scale that term. Freeze parameters with `requires_grad(false)`.
  double lr_factor = 1;
  /// In place of the optimizer's.
  std::optional<double> weight_decay = {};
};

// Schedules: the learning rate of a step, made of `lr` and the number of steps taken before; as in PyTorch where the
// scheduler steps after each step of the optimizer, not after each epoch.

/// lr * gamma^floor(step / step_size)
struct StepLR {
  std::int64_t step_size;
  double gamma = 0.1;
};

/// From lr * start_factor to lr * end_factor in total_iters steps: a warm-up.
struct LinearLR {
  double start_factor = 1.0 / 3, end_factor = 1;
  std::int64_t total_iters = 5;
};

/// Half a wave of the cosine from lr to eta_min in T_max steps, and back in the next.
struct CosineAnnealingLR {
  std::int64_t T_max;
  double eta_min = 0;
};

/// One after another; each but the first begins at its milestone, a step, and counts from there:
///
///     SequentialLR{{LinearLR{.total_iters = 100}, CosineAnnealingLR{.T_max = 900}}, {100}}
struct SequentialLR {
  std::vector<std::variant<StepLR, LinearLR, CosineAnnealingLR>> schedulers;
  std::vector<std::int64_t> milestones;
};

using Schedule = std::variant<StepLR, LinearLR, CosineAnnealingLR, SequentialLR>;

/// An average of each parameter's values: decay * average + (1 - decay) * parameter after each step, the parameter
/// itself after the first; the slot `ema`, in checkpoints as `fc.weight.ema`. `predict` uses the parameters, or
/// the weights that `train --save-averages` has written.
struct EMA {
  double decay = 0.999;
};

/// What is differentiated is the loss times a scale, so that gradients which are computed in f16 are none too small for it; they
/// are divided by it before they are clipped: torch.amp.GradScaler. A step with a gradient that is not finite leaves parameters,
/// the optimizer's slots, averages and the number of steps as they were, on all replicas, and the scale is multiplied by
/// backoff_factor; after growth_interval steps without one, by growth_factor. Checkpoints have it as `loss_scale`. Compiled with
/// the precision f16, a graph that asks for none has one as here.
struct LossScale {
  double init_scale = 65536, growth_factor = 2, backoff_factor = 0.5;
  std::int64_t growth_interval = 2000;
};

/// What `minimize` does beside the updates.
struct Options {
  std::vector<Group> groups = {};
  /// Bounds each element of each gradient, as clip_grad_value_ does.
  std::optional<double> clip_grad_value = {};
  /// Bounds the L2 norm of all gradients together, of all replicas' rows, as clip_grad_norm_ does: behind
  /// clip_grad_value, if both are given.
  std::optional<double> clip_grad_norm = {};
  std::optional<Schedule> schedule = {};
  std::optional<EMA> ema = {};
  std::optional<LossScale> loss_scale = {};
};

} // namespace sluice::optim
