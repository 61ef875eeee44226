// Optimizers, schedules and options for Graph::minimize. Names, formulas and defaults are those of torch.optim unless a
// comment names a difference. Graph::minimize throws Error for negative or infinite numbers (dampening may be
// negative), and for betas or an EMA decay outside of [0, 1).
#pragma once

#include "sluice/language.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace sluice::optim {

// The learning rate `lr` is a state of the program that can be set at run time (`--set lr=0.1`). Options of torch.optim
// that change speed only (foreach, fused, ...) and `maximize` do not exist.

/// torch.optim.SGD. nesterov requires a momentum and no dampening.
struct SGD {
  double lr = 1e-3, momentum = 0, dampening = 0, weight_decay = 0;
  bool nesterov = false;
};

/// torch.optim.Adam. The weight decay is part of the gradient.
struct Adam {
  double lr = 1e-3;
  std::pair<double, double> betas = {0.9, 0.999};
  double eps = 1e-8, weight_decay = 0;
  bool amsgrad = false;
};

/// torch.optim.AdamW. The weight decay is separate from the gradient.
struct AdamW {
  double lr = 1e-3;
  std::pair<double, double> betas = {0.9, 0.999};
  double eps = 1e-8, weight_decay = 1e-2;
  bool amsgrad = false;
};

/// torch.optim.RMSprop.
struct RMSprop {
  double lr = 1e-2, alpha = 0.99, eps = 1e-8, weight_decay = 0, momentum = 0;
  bool centered = false;
};

/// Any optimizer.
using Optimizer = std::variant<SGD, Adam, AdamW, RMSprop>;

/// Parameters with other settings than the rest (PyTorch's parameter groups), for example biases and norms without
/// decay:
///
///     {.params = {"*.bias", "*norm*"}, .weight_decay = 0}
struct Group {
  /// Patterns of parameter names; '*' matches any characters. Graph::minimize throws Error if a pattern matches no
  /// parameter that the loss depends on, or if a parameter is in two groups.
  std::vector<std::string> params;
  /// The learning rate of the group is `lr` times this factor; the schedule is applied to the product. As in PyTorch, 0
  /// does not freeze parameters if the schedule adds a term, such as `eta_min` of CosineAnnealingLR. The factor does
  /// not scale that term. Freeze parameters with `requires_grad(false)`.
  double lr_factor = 1;
  /// Replaces the weight decay of the optimizer.
  std::optional<double> weight_decay = {};
};

// Schedules: the learning rate of a step as a function of `lr` and `step`, the number of earlier steps. They equal
// torch.optim.lr_scheduler's if the scheduler steps after each step of the optimizer, not after each epoch. Numbers of
// steps are from 1 to 2^31 - 1.

/// lr * gamma^floor(step / step_size)
struct StepLR {
  std::int64_t step_size;
  double gamma = 0.1;
};

/// lr times a factor from start_factor (in (0, 1]) to end_factor (in [0, 1]), linearly in total_iters steps: a warm-up.
struct LinearLR {
  double start_factor = 1.0 / 3, end_factor = 1;
  std::int64_t total_iters = 5;
};

/// From lr to eta_min along half a cosine wave in T_max steps, and back in the next T_max.
struct CosineAnnealingLR {
  std::int64_t T_max;
  double eta_min = 0;
};

/// One schedule after another. Each but the first begins at its milestone, an ascending number of steps, and counts
/// steps from there:
///
///     SequentialLR{{LinearLR{.total_iters = 100}, CosineAnnealingLR{.T_max = 900}}, {100}}
struct SequentialLR {
  std::vector<std::variant<StepLR, LinearLR, CosineAnnealingLR>> schedulers;
  std::vector<std::int64_t> milestones;
};

/// Any schedule.
using Schedule = std::variant<StepLR, LinearLR, CosineAnnealingLR, SequentialLR>;

/// An exponential moving average of each parameter: decay * average + (1 - decay) * parameter after each step, and the
/// parameter itself after the first (torch.optim.swa_utils.AveragedModel with get_ema_multi_avg_fn). Checkpoints hold
/// it as `fc.weight.ema`. `predict` uses the parameters; `train --save-averages` writes the averages as weights.
struct EMA {
  double decay = 0.999;
};

/// torch.amp.GradScaler: differentiates the loss times a scale, so that f16 gradients do not underflow, and divides the
/// gradients by the scale before they are clipped. A step with a gradient that is not finite changes no parameter,
/// optimizer state, average or step count, on any replica, and multiplies the scale by backoff_factor. growth_interval
/// finite steps in a row multiply it by growth_factor. Checkpoints hold it as `loss_scale`. A graph that is compiled
/// with precision f16 has one with these defaults unless it sets its own.
struct LossScale {
  double init_scale = 65536, growth_factor = 2, backoff_factor = 0.5;
  std::int64_t growth_interval = 2000;
};

/// Further options of Graph::minimize.
struct Options {
  std::vector<Group> groups = {}; ///< other parameters use the optimizer as given
  /// Clamps each element of each gradient to this absolute value, as torch.nn.utils.clip_grad_value_. Above 0.
  std::optional<double> clip_grad_value = {};
  /// Bounds the L2 norm of all gradients together, over all replicas, as torch.nn.utils.clip_grad_norm_. Above 0.
  /// Applied after clip_grad_value.
  std::optional<double> clip_grad_norm = {};
  std::optional<Schedule> schedule = {};    ///< a constant rate by default
  std::optional<EMA> ema = {};              ///< no averages by default
  std::optional<LossScale> loss_scale = {}; ///< none by default, except with precision f16
};

} // namespace sluice::optim
