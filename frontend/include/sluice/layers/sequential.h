// Sequences of layers.
#pragma once

#include "sluice/module.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace sluice::nn {

/// The function `flatten`, by default of all dimensions but the first.
class Flatten : public Module {
public:
  Flatten(Module *parent, std::string name, std::int64_t start_dim = 1, std::int64_t end_dim = -1,
          Where where = Where::current());
  Tensor forward(Tensor x) override;

private:
  std::int64_t start, end;
};

/// Calls modules one after another, as torch.nn.Sequential. They are named "0", "1", ... and belong to it:
///
///     nn::Sequential features{this, "features"};          // in the constructor:
///     features.add<nn::Conv2d>(1, 20, 3).add<nn::ReLU>().add<nn::MaxPool2d>(2);
class Sequential : public Module {
public:
  using Module::Module;
  Tensor forward(Tensor x) override;
  /// For layers that take three tensors: each receives the result of the one before, a and b.
  Tensor forward(Tensor x, Tensor a, Tensor b) override;

  /// Constructs a layer with these arguments, after `parent` and `name`, and appends it.
  template <class Layer, class... Args> Sequential &add(Args... args) {
    layers.push_back(std::make_unique<Layer>(this, std::to_string(layers.size()), std::move(args)...));
    return *this;
  }

private:
  std::vector<std::unique_ptr<Module>> layers;
};

} // namespace sluice::nn
