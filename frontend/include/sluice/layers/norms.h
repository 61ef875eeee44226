// Normalization.
#pragma once

#include "sluice/module.h"
#include "sluice/ops.h"

#include <cstdint>
#include <optional>
#include <string>

namespace sluice::nn {

// Weights begin as ones and biases as zeros. Without `affine` (elementwise_affine), a layer has neither.

/// Options of BatchNorm2d: BatchNormOptions, and whether there are weight and bias. PyTorch's track_running_stats=False
/// is not available.
struct BatchNorm2dOptions {
  double eps = 1e-5, momentum = 0.1;
  bool affine = true;
};
/// x [N, num_features, ...], normalized per channel: the function `batch_norm`. Unlike PyTorch's, it accepts any number
/// of dimensions from 2 on, so that it is also BatchNorm1d and BatchNorm3d.
class BatchNorm2d : public Module {
public:
  BatchNorm2d(Module *parent, std::string name, std::int64_t num_features, BatchNorm2dOptions options = {},
              Where where = Where::current());
  Tensor forward(Tensor x) override;

  Parameter weight, bias;           ///< [num_features]
  Tensor running_mean, running_var; ///< [num_features], buffers; begin as zeros and ones

private:
  BatchNormOptions options;
};

/// Options of LayerNorm.
struct LayerNormOptions {
  double eps = 1e-5; ///< above 0
  bool elementwise_affine = true, bias = true;
};
/// x normalized over its last dimensions, which are normalized_shape: the function `layer_norm`.
class LayerNorm : public Module {
public:
  LayerNorm(Module *parent, std::string name, Shape normalized_shape, LayerNormOptions options = {},
            Where where = Where::current());
  Tensor forward(Tensor x) override;

  Parameter weight, bias; ///< normalized_shape

private:
  Shape shape;
  double eps;
};

/// Options of RMSNorm.
struct RMSNormOptions {
  std::optional<double> eps = {}; ///< the machine epsilon of the dtype by default
  bool elementwise_affine = true;
};
/// x divided by the root of the mean square over its last dimensions: the function `rms_norm`.
class RMSNorm : public Module {
public:
  RMSNorm(Module *parent, std::string name, Shape normalized_shape, RMSNormOptions options = {},
          Where where = Where::current());
  Tensor forward(Tensor x) override;

  Parameter weight; ///< normalized_shape

private:
  Shape shape;
  std::optional<double> eps;
};

/// Options of GroupNorm.
struct GroupNormOptions {
  double eps = 1e-5; ///< above 0
  bool affine = true;
};
/// x [N, num_channels, ...], normalized over groups of channels: the function `group_norm`. num_groups must divide
/// num_channels.
class GroupNorm : public Module {
public:
  GroupNorm(Module *parent, std::string name, std::int64_t num_groups, std::int64_t num_channels,
            GroupNormOptions options = {}, Where where = Where::current());
  Tensor forward(Tensor x) override;

  Parameter weight, bias; ///< [num_channels]

private:
  std::int64_t groups;
  double eps;
};

/// Options of InstanceNorm2d. PyTorch's track_running_stats is not available.
struct InstanceNormOptions {
  double eps = 1e-5; ///< above 0
  bool affine = false;
};
/// x [N, num_features, ...], normalized over each channel of each row: the function `instance_norm`. Without `affine`,
/// num_features is not checked.
class InstanceNorm2d : public Module {
public:
  InstanceNorm2d(Module *parent, std::string name, std::int64_t num_features, InstanceNormOptions options = {},
                 Where where = Where::current());
  Tensor forward(Tensor x) override;

  Parameter weight, bias; ///< [num_features]

private:
  double eps;
};

/// Options of LocalResponseNorm: arguments of local_response_norm.
struct LocalResponseNormOptions {
  double alpha = 1e-4, beta = 0.75, k = 1.0;
};
/// x [N, C, ...], divided by sums of squares over `size` adjacent channels: the function `local_response_norm`.
class LocalResponseNorm : public Module {
public:
  LocalResponseNorm(Module *parent, std::string name, std::int64_t size, LocalResponseNormOptions options = {},
                    Where where = Where::current());
  Tensor forward(Tensor x) override;

private:
  std::int64_t size;
  LocalResponseNormOptions options;
};

} // namespace sluice::nn
