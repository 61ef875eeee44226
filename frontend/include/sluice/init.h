// How parameters begin.
#pragma once

#include "sluice/shape.h"

#include <cstdint>
#include <optional>
#include <string>

namespace sluice::init {

/// What a deviation is scaled by: the number of inputs of one output (the product of all dimensions but the first), that of
/// outputs of one input (of all but the second), or the mean of both.
enum class Fan { in, out, mean };

/// One rule: a constant (a), uniform in [a, b), normal with mean a and deviation b, or data of a file. With a fan, a and b are
/// divided by its square root.
struct Init {
  enum class Kind { constant, uniform, normal, data };
  Kind kind = Kind::constant;
  double a = 0, b = 0;
  std::optional<Fan> fan = {};
  std::optional<std::int64_t> zero_row = {}; ///< of the first dimension: begins as zeros
  std::string file = {};                     ///< of data: .safetensors or .npy
  std::string tensor = {};                   ///< in a safetensors file; empty: what is called as the parameter

  /// The rule for one parameter, free of fans.
  Init resolved(const Shape &shape) const;
};

Init constant(double value);
Init zeros();
Init ones();
Init uniform(double low, double high);
Init normal(double mean = 0.0, double std = 1.0);
/// Uniform within +-gain * sqrt(3 / fan), gain = sqrt(2 / (1 + a^2)); PyTorch's layers use a = sqrt(5).
Init kaiming_uniform(double a = 0.0, Fan mode = Fan::in);
/// A tensor of a safetensors file, by default the one with the state's name. `net.initialize("*",
/// init::from_file("x.safetensors"))` initializes the same states as `--weights x.safetensors`: parameters and
/// statistics. Shapes must be equal; floats may fill wider types. Graph::save writes the tensor beside the graph's
/// file, and it is compiled in. Programs no longer need `path`.
Init from_file(const std::string &path, const std::string &tensor = "");
/// The same of an .npy file.
Init from_npy(const std::string &path);
/// Normal with deviation gain / sqrt(fan).
Init kaiming_normal(double a = 0.0, Fan mode = Fan::in);
/// Uniform within +-gain * sqrt(6 / (inputs of one output + outputs of one input)).
Init xavier_uniform(double gain = 1.0);

} // namespace sluice::init
