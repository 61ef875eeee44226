// Initial values of parameters: the rules of torch.nn.init. The entry point `init` draws random numbers from the seed
// of the program. All replicas draw the same numbers.
#pragma once

#include "sluice/shape.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace sluice::runtime {
struct TensorSource;
}

namespace sluice::init {

/// The number that scales a rule: inputs of one output (the product of all dimensions but the first), outputs of one
/// input (of all but the second), or their mean.
enum class Fan { in, out, mean };

/// One rule. The functions below make rules; they check nothing. Module::parameter, Module::initialize and
/// Graph::constant throw Error for a rule that is invalid for the state.
struct Init {
  /// a; uniform in [a, b); normal with mean a and standard deviation b; or the elements of a file.
  enum class Kind { constant, uniform, normal, data };
  Kind kind = Kind::constant;
  double a = 0, b = 0;
  std::optional<Fan> fan = {};               ///< divide a and b by the square root of this number
  std::optional<std::int64_t> zero_row = {}; ///< this index of the first dimension begins as zeros
  std::string file = {};                     ///< of data: a .safetensors or .npy file
  std::string tensor = {};                   ///< its name in a safetensors file; empty: the name of the parameter
  /// Of data: elements that an importer holds; null: those of `file`.
  std::shared_ptr<const runtime::TensorSource> source = {};

  /// The rule for a parameter of this shape, without a fan.
  Init resolved(const Shape &shape) const;
};

/// Every element is this number.
Init constant(double value);
Init zeros();
Init ones();
/// Uniform in [low, high).
Init uniform(double low, double high);
/// Normal with this mean and standard deviation.
Init normal(double mean = 0.0, double std = 1.0);
/// Uniform within +-gain * sqrt(3 / fan), with gain = sqrt(2 / (1 + a^2)): the gain of leaky_relu with slope a.
/// PyTorch's layers use a = sqrt(5).
Init kaiming_uniform(double a = 0.0, Fan mode = Fan::in);
/// A tensor of a safetensors file, by default the one with the name of the state. `net.initialize("*",
/// init::from_file("x.safetensors"))` initializes the states that `--weights x.safetensors` loads: parameters and
/// statistics. Shapes must be equal; floats may fill wider types. Graph::save writes the tensor to a file next to that
/// of the graph, and it is compiled in, so that programs do not need `path`. A file that cannot be read is Error 3.
Init from_file(const std::string &path, const std::string &tensor = "");
/// The array of an .npy file.
Init from_npy(const std::string &path);
/// Normal with standard deviation gain / sqrt(fan), with the gain of kaiming_uniform.
Init kaiming_normal(double a = 0.0, Fan mode = Fan::in);
/// Uniform within +-gain * sqrt(6 / (inputs of one output + outputs of one input)).
Init xavier_uniform(double gain = 1.0);

} // namespace sluice::init
