// Normalization and dropout, of floats. There is no `training` argument: batch_norm and dropout behave as in PyTorch's
// training mode in a training step, and as in eval mode everywhere else.
#pragma once

#include "sluice/tensor.h"

#include <cstdint>
#include <optional>

namespace sluice {

/// Options of batch_norm. PyTorch's momentum=None is not available.
struct BatchNormOptions {
  double eps = 1e-5;     ///< added to the variance; above 0
  double momentum = 0.1; ///< the share of the batch in the new running statistics, from 0 to 1
};
/// (x - mean) / sqrt(var + eps) * weight + bias per channel of x [N, C, ...]; statistics, weight and bias are [C]. A
/// training step uses the statistics of its batch and moves the running statistics, buffers of a module, toward them.
/// Everything else uses the running statistics. Calls that share them update them once per call, in the order of the
/// calls. A batch of one value per channel does not change the running variance; if no batch can have more, compiling
/// the graph for training fails. PyTorch fails at run time instead.
Tensor batch_norm(Arg x, const Tensor &running_mean, const Tensor &running_var, const Tensor &weight = {},
                  const Tensor &bias = {}, BatchNormOptions options = {});

/// (x - mean) / sqrt(var + eps) * weight + bias, with the mean and the biased variance over the last dimensions.
/// normalized_shape lists these; weight and bias have this shape. Not over the batch. eps is above 0.
Tensor layer_norm(Arg x, Shape normalized_shape, const Tensor &weight = {}, const Tensor &bias = {}, double eps = 1e-5);
/// x / sqrt(mean(x^2) + eps) * weight over the last dimensions. eps is by default the machine epsilon of the dtype.
Tensor rms_norm(Arg x, Shape normalized_shape, const Tensor &weight = {}, std::optional<double> eps = {});
/// layer_norm over the channels of one group of x [N, C, ...] and all their elements. weight and bias are [C].
/// num_groups must divide C.
Tensor group_norm(Arg x, std::int64_t num_groups, const Tensor &weight = {}, const Tensor &bias = {},
                  double eps = 1e-5);

/// In a training step, 0 with probability p and x / (1 - p) otherwise; x everywhere else. Each call draws different
/// numbers, from the seed, the number of the step and the place of the element in the whole batch. They are equal on
/// every device and on any number of devices. 0 <= p <= 1.
Tensor dropout(Arg x, double p = 0.5);

} // namespace sluice
