// Normalization and dropout.
#pragma once

#include "sluice/tensor.h"

#include <cstdint>
#include <optional>

namespace sluice {

struct BatchNormOptions {
  double eps = 1e-5, momentum = 0.1;
};
/// Normalizes x [N, C, ...] by the statistics of the batch in training, and by the running statistics elsewhere. The
/// running statistics are states (buffers of a module), which training moves towards those of each batch. If several
/// calls share them, they are updated once per call, in the order of the calls. A batch of one value per channel does
/// not change the running variance. If no batch has more values, compiling the graph for training is an error.
Tensor batch_norm(Arg x, const Tensor &running_mean, const Tensor &running_var, const Tensor &weight = {},
                  const Tensor &bias = {}, BatchNormOptions options = {});

/// (x - mean) / sqrt(var + eps) * weight + bias, mean and var (biased) over the last dimensions, which are
/// normalized_shape, as are weight and bias. They are not the batch.
Tensor layer_norm(Arg x, Shape normalized_shape, const Tensor &weight = {}, const Tensor &bias = {}, double eps = 1e-5);
/// x / sqrt(mean(x^2) + eps) * weight over the last dimensions; eps is that of the dtype unless given.
Tensor rms_norm(Arg x, Shape normalized_shape, const Tensor &weight = {}, std::optional<double> eps = {});
/// As layer_norm, mean and var over the channels of a group of x [N, C, ...] and all that they have; weight and bias
/// are [C]. C is a multiple of num_groups.
Tensor group_norm(Arg x, std::int64_t num_groups, const Tensor &weight = {}, const Tensor &bias = {},
                  double eps = 1e-5);

/// In training 0 with probability p, and x / (1 - p) elsewhere; x itself outside of training. Each call draws numbers of
/// its own, by the seed, the number of the step and the element's place in the whole batch: the same on every device, and
/// on any number of them.
Tensor dropout(Arg x, double p = 0.5);

} // namespace sluice
