#include "tools/compiler/Deviation.h"

#include "ir/Types.h"
#include <cmath>

using namespace mlir;
using sluice::ir::HostTensor;

namespace sluice::compiler {

/// A few hundred roundings. The reference also rounds f16 and bf16, so these differ only if their f32 value is close to
/// the midpoint between two neighbors. Integers result from comparisons of floats, a few of which tie.
double toleranceOf(Type element) {
  switch (*ir::dtypeOf(element)) {
  case SLUICE_DTYPE_f32:
    return 2e-5;
  case SLUICE_DTYPE_f64:
    return 1e-13;
  case SLUICE_DTYPE_f16:
    return 8 * 0x1p-11;
  case SLUICE_DTYPE_bf16:
    return 8 * 0x1p-8;
  case SLUICE_DTYPE_i32:
  case SLUICE_DTYPE_i64:
  case SLUICE_DTYPE_u8:
  case SLUICE_DTYPE_boolean:
    return 1e-2;
  }
  llvm_unreachable("a dtype beyond the table");
}

static double errorOf(double have, double want) {
  if (std::isnan(want) || std::isnan(have))
    return std::isnan(want) == std::isnan(have) ? 0 : INFINITY;
  return want == have ? 0 : std::abs(want - have);
}

static double largestOf(const HostTensor &tensor) {
  double largest = 1e-30;
  for (double element : tensor.data)
    largest = std::isfinite(element) ? std::max(largest, std::abs(element)) : largest;
  return largest;
}

Deviation compareFloats(Type element, const HostTensor &actual, const HostTensor &expected,
                        const Explanations &explanations) {
  Deviation worst;
  double largest = largestOf(expected), tolerance = toleranceOf(element);
  for (auto [i, have, want] : llvm::enumerate(actual.data, expected.data)) {
    double target = want, error = errorOf(have, target) / largest;
    for (auto explained : {explanations.rounded, explanations.hidden})
      if (!(error <= tolerance) && (!std::isfinite(have) || !std::isfinite(target))) {
        target = explained().data[i];
        error = errorOf(have, target) / largest;
      }
    if (!(error <= tolerance) && std::isfinite(error))
      error = (errorOf(have, target) - explanations.granted(i)) / std::max(largest, explanations.magnitudes().data[i]);
    if (!(error <= worst.error))
      worst = {error, i};
  }
  return worst;
}

static Deviation shareOf(const HostTensor &actual, const HostTensor &expected,
                         llvm::function_ref<bool(size_t)> isExplained) {
  Deviation worst;
  double unequal = 0;
  for (auto [i, have, want] : llvm::enumerate(actual.data, expected.data))
    if (errorOf(have, want) > 0 && !isExplained(i)) {
      ++unequal;
      worst.element = i;
    }
  worst.error = unequal / std::max<double>(1, double(expected.size()));
  return worst;
}

Deviation compareIntegers(const HostTensor &actual, const HostTensor &expected) {
  return shareOf(actual, expected, [](size_t) { return false; });
}

Deviation compareIntegers(const HostTensor &actual, const HostTensor &expected, const Explanations &explanations) {
  return shareOf(actual, expected,
                 [&](size_t i) { return explanations.magnitudes().data[i] > 0 || explanations.granted(i) > 0; });
}

} // namespace sluice::compiler
