// Activations and dropout.
#pragma once

#include "sluice/module.h"
#include "sluice/ops.h"

#include <cstdint>
#include <string>
#include <utility>

namespace sluice::nn {

/// Layers that apply one function of ops/elementwise.h, without arguments or parameters: X(class, function).
#define SLUICE_ACTIVATIONS(X)                                                                                          \
  X(Identity, identity)                                                                                                \
  X(ReLU, relu)                                                                                                        \
  X(ReLU6, relu6)                                                                                                      \
  X(SiLU, silu)                                                                                                        \
  X(Sigmoid, sigmoid)                                                                                                  \
  X(Softplus, softplus)                                                                                                \
  X(Tanh, tanh)                                                                                                        \
  X(Hardsigmoid, hardsigmoid)                                                                                          \
  X(Hardswish, hardswish)
/// The class of one such layer.
#define SLUICE_ACTIVATION(Name, function)                                                                              \
  class Name : public Module {                                                                                         \
  public:                                                                                                              \
    Name(Module *parent, std::string name, Where where = Where::current()) : Module(parent, std::move(name), where) {} \
    Tensor forward(Tensor x) override { return sluice::function(at(x)); }                                              \
  };
SLUICE_ACTIVATIONS(SLUICE_ACTIVATION)
#undef SLUICE_ACTIVATION

/// The function `dropout`: active in training steps only. p outside of [0, 1] throws Error.
class Dropout : public Module {
public:
  Dropout(Module *parent, std::string name, double p = 0.5, Where where = Where::current());
  Tensor forward(Tensor x) override;

private:
  double p;
};

/// The function `gelu`.
class GELU : public Module {
public:
  GELU(Module *parent, std::string name, Gelu approximate = Gelu::none, Where where = Where::current());
  Tensor forward(Tensor x) override;

private:
  Gelu approximate;
};

/// The function `leaky_relu`.
class LeakyReLU : public Module {
public:
  LeakyReLU(Module *parent, std::string name, double negative_slope = 0.01, Where where = Where::current());
  Tensor forward(Tensor x) override;

private:
  double slope;
};

/// The function `elu`.
class ELU : public Module {
public:
  ELU(Module *parent, std::string name, double alpha = 1.0, Where where = Where::current());
  Tensor forward(Tensor x) override;

private:
  double alpha;
};

/// Options of PReLU.
struct PReLUOptions {
  double init = 0.25; ///< the first value of every weight
};
/// The function `prelu`, with one weight or one for each channel.
class PReLU : public Module {
public:
  PReLU(Module *parent, std::string name, std::int64_t num_parameters = 1, PReLUOptions options = {},
        Where where = Where::current());
  Tensor forward(Tensor x) override;

  Parameter weight; ///< [num_parameters]
};

} // namespace sluice::nn
