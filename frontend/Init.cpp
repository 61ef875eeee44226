// How parameters begin: PyTorch's rules.
#include "sluice/init.h"

#include <cmath>

namespace sluice::init {

Init Init::resolved(const Shape &shape) const {
  if (!fan)
    return *this;
  std::size_t across = *fan == Fan::in ? 0 : 1;
  double count = 1;
  for (std::size_t i = 0; i < shape.size(); ++i)
    count *= i == across ? 1 : double(shape[i].size);
  return {kind, a / std::sqrt(count), b / std::sqrt(count), std::nullopt, zero_row};
}

Init constant(double value) { return {Init::Kind::constant, value, 0}; }
Init zeros() { return constant(0.0); }
Init ones() { return constant(1.0); }
Init uniform(double low, double high) { return {Init::Kind::uniform, low, high}; }
Init normal(double mean, double std) { return {Init::Kind::normal, mean, std}; }

Init kaiming_uniform(double a, Fan mode) {
  double bound = std::sqrt(6.0 / (1.0 + a * a));
  return {Init::Kind::uniform, -bound, bound, mode};
}

Init kaiming_normal(double a, Fan mode) { return {Init::Kind::normal, 0, std::sqrt(2.0 / (1.0 + a * a)), mode}; }

} // namespace sluice::init
