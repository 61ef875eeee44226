#include "backends/cpu/compiler/llvm/MathDoubles.h"

namespace sluice::cpu {

using namespace mlir;

// Adding this constant to a double below 2^51 leaves the nearest integer in the last bits of the sum.
static constexpr double kToInteger = 0x1.8p52;

// x = 2^k m with m in [sqrt(1/2), sqrt(2)),
// and log m = 2 atanh((m - 1) / (m + 1)), whose series is short.
Value log2(const Formula &f, Value x) {
  constexpr double kTwoOverLn2 = 2.8853900817779268;
  FloatBits bits{f};
  Value k = bits.fromExponent(bits.sub(bits.of(x), bits.constant(0x3fe6a09e667f3bcd)));
  Value m = bits.asFloat(bits.sub(bits.of(x), bits.toExponent(k)));
  Value exponent = f.sub(bits.asFloat(bits.add(k, bits.of(f.constant(kToInteger)))), f.constant(kToInteger));
  Value s = f.div(f.sub(m, f.constant(1)), f.add(m, f.constant(1)));
  SmallVector<double> series;
  for (int n = 15; n >= 1; n -= 2)
    series.push_back(kTwoOverLn2 / n);
  return f.fma(f.polynomial(f.mul(s, s), series), s, exponent);
}

Value exp2(const Formula &f, Value x) {
  constexpr double kLn2 = 0.6931471805599453;
  FloatBits bits{f};
  Value shifted = f.add(x, f.constant(kToInteger));
  Value rest = f.sub(x, f.sub(shifted, f.constant(kToInteger)));
  SmallVector<double> series;
  double coefficient = 1;
  for (int n = 0; n <= 8; ++n, coefficient *= kLn2 / n)
    series.insert(series.begin(), coefficient);
  Value scale = bits.asFloat(bits.add(bits.toExponent(bits.of(shifted)), bits.of(f.constant(1))));
  return f.mul(f.polynomial(rest, series), scale);
}

} // namespace sluice::cpu
