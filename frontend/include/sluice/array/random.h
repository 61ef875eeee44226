// Random numbers from explicit keys on arrays. Numbers are those of <sluice/random.h>, and equal on every device.
//
//     Array keys = random::split(random::key(7));
//     Array noise = random::normal(keys[{0}], {3, 4}), mask = random::uniform(keys[{1}], {3, 4}) < 0.1;
#pragma once

#include "sluice/array/ops.h"
#include "sluice/random.h"

namespace sluice {

namespace random {

/// The key [2], i32, of a seed, on the device or on default_device(). One copy if that is an accelerator.
inline Array key(std::uint64_t seed, std::optional<Device> device = {},
                 std::source_location where = std::source_location::current()) {
  return array(std::vector<std::int32_t>{std::int32_t(seed >> 32), std::int32_t(seed)}, 2, std::move(device), where);
}
/// The next four are those of <sluice/random.h>. Results are on the device of the key.
inline Array split(ArrayArg key, std::int64_t n = 2) {
  return detail::apply(
      "split", key.where, [](Arg its, std::int64_t count) { return random::split(its, count); }, key, n);
}
inline Array bits(ArrayArg key, const Shape &shape) {
  return detail::apply("bits", key.where, [](Arg its, const Shape &of) { return random::bits(its, of); }, key, shape);
}
inline Array uniform(ArrayArg key, const Shape &shape, double low = 0, double high = 1, DType dtype = f32) {
  return detail::apply(
      "uniform", key.where,
      [](Arg its, const Shape &of, double from, double to, DType type) {
        return random::uniform(its, of, from, to, type);
      },
      key, shape, low, high, dtype);
}
inline Array normal(ArrayArg key, const Shape &shape, double mean = 0, double std = 1, DType dtype = f32) {
  return detail::apply(
      "normal", key.where,
      [](Arg its, const Shape &of, double center, double spread, DType type) {
        return random::normal(its, of, center, spread, type);
      },
      key, shape, mean, std, dtype);
}

} // namespace random

/// Sets elements to 0 with probability p, and divides the others by 1 - p. x is a float array; the key [2] is on its
/// device. Throws Error unless 0 <= p < 1. PyTorch takes no key.
inline Array dropout(ArrayArg x, double p, const Array &key) {
  if (!(p >= 0 && p < 1))
    throw Error("dropout: p must be at least 0 and below 1: " + std::to_string(p), x.where);
  return detail::apply(
      "dropout", x.where,
      [](const Tensor &its, const Tensor &of, double probability) {
        Tensor kept = ge(random::uniform(of, its.shape()), probability);
        return where(kept, its / (1 - probability), 0.0);
      },
      x, key, p);
}

} // namespace sluice
