// How parameters begin: PyTorch's rules.
#include "sluice/init.h"

#include <cmath>

namespace sluice::init {

Init Init::resolved(const Shape &shape) const {
  if (!byFan)
    return *this;
  double fanIn = 1;
  for (std::size_t i = 1; i < shape.size(); ++i)
    fanIn *= double(shape[i].size);
  return {kind, a / std::sqrt(fanIn), b / std::sqrt(fanIn), false};
}

Init constant(double value) { return {Init::Kind::constant, value, 0}; }
Init zeros() { return constant(0.0); }
Init ones() { return constant(1.0); }
Init uniform(double low, double high) { return {Init::Kind::uniform, low, high}; }
Init normal(double mean, double std) { return {Init::Kind::normal, mean, std}; }

Init kaiming_uniform(double a) {
  double bound = std::sqrt(6.0 / (1.0 + a * a));
  return {Init::Kind::uniform, -bound, bound, true};
}

Init kaiming_normal(double a) { return {Init::Kind::normal, 0, std::sqrt(2.0 / (1.0 + a * a)), true}; }

} // namespace sluice::init
