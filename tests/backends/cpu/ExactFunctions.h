// Elementwise functions computed by MPFR with 160 bits, and the errors of floats relative to them.
#pragma once

#define MPFR_USE_NO_MACRO // use functions, whose arguments convert to the operand types, not macros
#include <cmath>
#include <mpfr.h>
#include <string>
#include <vector>

namespace sluice::cpu::testing {

/// A number with 160 bits.
class Exact {
public:
  explicit Exact(double value = 0) {
    mpfr_init2(number, 160);
    mpfr_set_d(number, value, MPFR_RNDN);
  }
  Exact(const Exact &) = delete;
  ~Exact() { mpfr_clear(number); }
  operator mpfr_ptr() { return number; }
  operator mpfr_srcptr() const { return number; }

private:
  mpfr_t number;
};

/// An op of one or two operands, or a formula of such ops.
struct Function {
  std::string name;  ///< its row in the table of accuracies
  std::string body;  ///< the body of a kernel: T is the type, %y is the result
  unsigned operands; ///< 1 or 2
  double low, high;  ///< the range in which most results are neither 0, nor infinite, nor the operand
  void (*exact)(mpfr_ptr y, mpfr_srcptr a, mpfr_srcptr b);
  double ulps = INFINITY; ///< of a composite function: the largest error, unless results cancel
};

/// Functions whose errors are measured in units in the last place.
const std::vector<Function> &elementaryFunctions();
/// Functions composed of several of these. Results of some may cancel.
const std::vector<Function> &compositeFunctions();

/// A floating-point type: its name in the IR, its significand bits, the smallest exponent of a unit in the last place,
/// and the exponent of the first power of two beyond it.
struct Format {
  const char *name;
  int bits, leastUnit, end;
};
inline constexpr Format kSingle{"f32", 24, -149, 128}, kDouble{"f64", 53, -1074, 1024};

/// The error in units in the last place of the exact result. An overflow counts as the first power of two beyond the
/// type. The error is infinite if only one of the two is NaN, or if a zero has the wrong sign.
double ulpsBetween(double got, const Exact &exact, const Format &format);

/// |got - exact| / (|exact| + 1), with the same rule for NaN. Equal infinities have the error 0.
double relativeError(double got, const Exact &exact);

} // namespace sluice::cpu::testing
