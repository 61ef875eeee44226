// How parameters begin.
#pragma once

#include "sluice/shape.h"

namespace sluice::init {

/// One rule: a constant (a), uniform in [a, b), or normal with mean a and deviation b. With `byFan`, a and b are
/// divided by the square root of fan-in: the product of all dimensions but the first.
struct Init {
  enum class Kind { constant, uniform, normal };
  Kind kind = Kind::constant;
  double a = 0, b = 0;
  bool byFan = false;

  /// The rule for one parameter, free of fans.
  Init resolved(const Shape &shape) const;
};

Init constant(double value);
Init zeros();
Init ones();
Init uniform(double low, double high);
Init normal(double mean = 0.0, double std = 1.0);
/// Uniform within +-gain * sqrt(3 / fan_in), gain = sqrt(2 / (1 + a^2)); PyTorch's layers use a = sqrt(5).
Init kaiming_uniform(double a = 0.0);
/// Normal with deviation gain / sqrt(fan_in).
Init kaiming_normal(double a = 0.0);

} // namespace sluice::init
