// Elementwise functions computed by MPFR with 160 bits, and errors of floats beside them.
#pragma once

#define MPFR_USE_NO_MACRO // functions, which take what converts to their operands
#include <mpfr.h>
#include <string>
#include <vector>

namespace sluice::cpu::testing {

/// A number of 160 bits.
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

/// An op, or a formula of ops, of one or two operands.
struct Function {
  std::string name;  ///< of its row in the table of accuracies
  std::string body;  ///< of a kernel, with T for the type and %y as the result
  unsigned operands; ///< 1 or 2
  double low, high;  ///< between which most results are neither 0 nor infinite nor the operand
  void (*exact)(mpfr_ptr y, mpfr_srcptr a, mpfr_srcptr b);
};

/// The functions whose errors are counted in units of the last place.
const std::vector<Function> &elementaryFunctions();
/// Those made of several of them, whose results may cancel.
const std::vector<Function> &compositeFunctions();

/// A floating-point type: its name in the IR, the bits of its significands, the least exponent of a unit in the last place, and
/// the exponent of the first power of two beyond it.
struct Format {
  const char *name;
  int bits, leastUnit, end;
};
inline constexpr Format kSingle{"f32", 24, -149, 128}, kDouble{"f64", 53, -1074, 1024};

/// The error in units in the last place of the exact result. What overflows counts as the first power of two beyond the type.
/// NaN in place of a number, a number in place of NaN and a zero of the other sign are infinitely wrong.
double ulpsBetween(double got, const Exact &exact, const Format &format);

/// |got - exact| / (|exact| + 1), likewise; of infinities 0 if they agree.
double relativeError(double got, const Exact &exact);

} // namespace sluice::cpu::testing
