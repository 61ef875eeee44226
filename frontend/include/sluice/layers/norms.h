// Normalization.
#pragma once

#include "sluice/module.h"
#include "sluice/ops.h"

#include <cstdint>
#include <optional>
#include <string>

namespace sluice::nn {

struct BatchNorm2dOptions {
  double eps = 1e-5, momentum = 0.1;
  bool affine = true;
};
class BatchNorm2d : public Module {
public:
  BatchNorm2d(Module *parent, std::string name, std::int64_t num_features, BatchNorm2dOptions options = {},
              Where where = Where::current());
  Tensor forward(Tensor x) override;

  Parameter weight, bias;
  Tensor running_mean, running_var;

private:
  BatchNormOptions options;
};

struct LayerNormOptions {
  double eps = 1e-5;
  bool elementwise_affine = true, bias = true;
};
class LayerNorm : public Module {
public:
  LayerNorm(Module *parent, std::string name, Shape normalized_shape, LayerNormOptions options = {},
            Where where = Where::current());
  Tensor forward(Tensor x) override;

  Parameter weight, bias;

private:
  Shape shape;
  double eps;
};

struct RMSNormOptions {
  std::optional<double> eps = {}; ///< that of the dtype
  bool elementwise_affine = true;
};
class RMSNorm : public Module {
public:
  RMSNorm(Module *parent, std::string name, Shape normalized_shape, RMSNormOptions options = {},
          Where where = Where::current());
  Tensor forward(Tensor x) override;

  Parameter weight;

private:
  Shape shape;
  std::optional<double> eps;
};

struct GroupNormOptions {
  double eps = 1e-5;
  bool affine = true;
};
class GroupNorm : public Module {
public:
  GroupNorm(Module *parent, std::string name, std::int64_t num_groups, std::int64_t num_channels,
            GroupNormOptions options = {}, Where where = Where::current());
  Tensor forward(Tensor x) override;

  Parameter weight, bias;

private:
  std::int64_t groups;
  double eps;
};

struct InstanceNormOptions {
  double eps = 1e-5;
  bool affine = false;
};
class InstanceNorm2d : public Module {
public:
  InstanceNorm2d(Module *parent, std::string name, std::int64_t num_features, InstanceNormOptions options = {},
                 Where where = Where::current());
  Tensor forward(Tensor x) override;

  Parameter weight, bias;

private:
  double eps;
};

struct LocalResponseNormOptions {
  double alpha = 1e-4, beta = 0.75, k = 1.0;
};
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
