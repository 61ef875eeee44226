// Initialization of parameters by PyTorch's rules.
#include "sluice/init.h"

#include <cmath>

namespace sluice::init {

/// The product of all dimensions but one.
static double countBut(const Shape &shape, std::size_t dim) {
  double count = 1;
  for (std::size_t i = 0; i < shape.size(); ++i)
    count *= i == dim ? 1 : double(shape[i].size);
  return count;
}

static double countOf(Fan fan, const Shape &shape) {
  if (fan == Fan::mean)
    return (countOf(Fan::in, shape) + countOf(Fan::out, shape)) / 2;
  return countBut(shape, fan == Fan::in ? 0 : 1);
}

Init Init::resolved(const Shape &shape) const {
  if (!fan)
    return *this;
  double scale = std::sqrt(countOf(*fan, shape));
  return {kind, a / scale, b / scale, std::nullopt, zero_row, file, tensor, source};
}

Init constant(double value) { return {Init::Kind::constant, value, 0}; }
Init zeros() { return constant(0.0); }
Init ones() { return constant(1.0); }
Init uniform(double low, double high) { return {Init::Kind::uniform, low, high}; }
Init normal(double mean, double std) { return {Init::Kind::normal, mean, std}; }

Init from_file(const std::string &path, const std::string &tensor) {
  return {.kind = Init::Kind::data, .file = path, .tensor = tensor};
}

Init from_npy(const std::string &path) { return from_file(path); }

Init kaiming_uniform(double a, Fan mode) {
  double bound = std::sqrt(6.0 / (1.0 + a * a));
  return {Init::Kind::uniform, -bound, bound, mode};
}

Init kaiming_normal(double a, Fan mode) { return {Init::Kind::normal, 0, std::sqrt(2.0 / (1.0 + a * a)), mode}; }

Init xavier_uniform(double gain) {
  double bound = gain * std::sqrt(3.0);
  return {Init::Kind::uniform, -bound, bound, Fan::mean};
}

} // namespace sluice::init
