#include "tests/backends/cpu/ExactFunctions.h"

#include <algorithm>

namespace sluice::cpu::testing {

static std::string unary(const std::string &op, const std::string &attributes = "") {
  return "%y = sluice." + op + " %0 " + attributes + " : (T) -> T";
}
static std::string binary(const std::string &op) { return "%y = sluice." + op + " %0, %1 : (T, T) -> T"; }

#define SLUICE_EXACT(statements)                                                                                       \
  [](mpfr_ptr y, mpfr_srcptr a, [[maybe_unused]] mpfr_srcptr b) {                                                      \
    [[maybe_unused]] constexpr mpfr_rnd_t round = MPFR_RNDN;                                                           \
    statements                                                                                                         \
  }

/// 1 / (1 + e^-a)
static void sigmoid(mpfr_ptr y, mpfr_srcptr a) {
  mpfr_neg(y, a, MPFR_RNDN);
  mpfr_exp(y, y, MPFR_RNDN);
  mpfr_add_ui(y, y, 1, MPFR_RNDN);
  mpfr_ui_div(y, 1, y, MPFR_RNDN);
}

/// max(a, 0) + log(1 + e^-|a|)
static void softplus(mpfr_ptr y, mpfr_srcptr a) {
  Exact tail;
  mpfr_abs(tail, a, MPFR_RNDN);
  mpfr_neg(tail, tail, MPFR_RNDN);
  mpfr_exp(tail, tail, MPFR_RNDN);
  mpfr_log1p(tail, tail, MPFR_RNDN);
  Exact zero;
  mpfr_max(y, a, zero, MPFR_RNDN);
  if (mpfr_nan_p(a))
    mpfr_set_nan(y);
  mpfr_add(y, y, tail, MPFR_RNDN);
}

/// a Phi(a) as a erfc(-a / sqrt(2)) / 2
static void gelu(mpfr_ptr y, mpfr_srcptr a) {
  Exact root;
  mpfr_sqrt_ui(root, 2, MPFR_RNDN);
  mpfr_div(root, a, root, MPFR_RNDN);
  mpfr_neg(root, root, MPFR_RNDN);
  mpfr_erfc(root, root, MPFR_RNDN);
  mpfr_mul(y, a, root, MPFR_RNDN);
  mpfr_div_2ui(y, y, 1, MPFR_RNDN);
}

/// a sigmoid(2 sqrt(2 / pi) (a + 0.044715 a^3)), which is a (1 + tanh(...)) / 2
static void tanhGelu(mpfr_ptr y, mpfr_srcptr a) {
  Exact inner(0.044715), scale;
  mpfr_mul(inner, inner, a, MPFR_RNDN);
  mpfr_mul(inner, inner, a, MPFR_RNDN);
  mpfr_add_ui(inner, inner, 1, MPFR_RNDN);
  mpfr_mul(inner, inner, a, MPFR_RNDN);
  mpfr_const_pi(scale, MPFR_RNDN);
  mpfr_ui_div(scale, 8, scale, MPFR_RNDN);
  mpfr_sqrt(scale, scale, MPFR_RNDN);
  mpfr_mul(inner, inner, scale, MPFR_RNDN);
  Exact share;
  sigmoid(share, inner);
  mpfr_mul(y, a, share, MPFR_RNDN);
}

const std::vector<Function> &elementaryFunctions() {
  static const std::vector<Function> functions = {
      {"exp", unary("exp"), 1, -750, 715, SLUICE_EXACT(mpfr_exp(y, a, round);)},
      {"expm1", unary("expm1"), 1, -40, 715, SLUICE_EXACT(mpfr_expm1(y, a, round);)},
      {"log", unary("log"), 1, 0, 4, SLUICE_EXACT(mpfr_log(y, a, round);)},
      {"log1p", unary("log1p"), 1, -1, 3, SLUICE_EXACT(mpfr_log1p(y, a, round);)},
      {"sin", unary("sin"), 1, -100, 100, SLUICE_EXACT(mpfr_sin(y, a, round);)},
      {"cos", unary("cos"), 1, -100, 100, SLUICE_EXACT(mpfr_cos(y, a, round);)},
      {"asin", unary("asin"), 1, -1, 1, SLUICE_EXACT(mpfr_asin(y, a, round);)},
      {"acos", unary("acos"), 1, -1, 1, SLUICE_EXACT(mpfr_acos(y, a, round);)},
      {"atan", unary("atan"), 1, -100, 100, SLUICE_EXACT(mpfr_atan(y, a, round);)},
      {"sinh", unary("sinh"), 1, -720, 720, SLUICE_EXACT(mpfr_sinh(y, a, round);)},
      {"cosh", unary("cosh"), 1, -720, 720, SLUICE_EXACT(mpfr_cosh(y, a, round);)},
      {"asinh", unary("asinh"), 1, -100, 100, SLUICE_EXACT(mpfr_asinh(y, a, round);)},
      {"acosh", unary("acosh"), 1, 1, 100, SLUICE_EXACT(mpfr_acosh(y, a, round);)},
      {"atanh", unary("atanh"), 1, -1, 1, SLUICE_EXACT(mpfr_atanh(y, a, round);)},
      {"tanh", unary("tanh"), 1, -20, 20, SLUICE_EXACT(mpfr_tanh(y, a, round);)},
      {"erf", unary("erf"), 1, -6, 6, SLUICE_EXACT(mpfr_erf(y, a, round);)},
      {"sigmoid", unary("sigmoid"), 1, -750, 40, SLUICE_EXACT(sigmoid(y, a);)},
      {"pow", binary("pow"), 2, -20, 20, SLUICE_EXACT(mpfr_pow(y, a, b, round);)},
      {"sqrt", unary("sqrt"), 1, 0, 100, SLUICE_EXACT(mpfr_sqrt(y, a, round);)},
      {"div", binary("div"), 2, -20, 20, SLUICE_EXACT(mpfr_div(y, a, b, round);)},
  };
  return functions;
}

const std::vector<Function> &compositeFunctions() {
  static const std::vector<Function> functions = {
      {"gelu", unary("gelu"), 1, -12, 12, SLUICE_EXACT(gelu(y, a);)},
      {"gelu, tanh", unary("gelu", "{tanh}"), 1, -12, 12, SLUICE_EXACT(tanhGelu(y, a);)},
      {"silu", unary("silu"), 1, -90, 40, SLUICE_EXACT(sigmoid(y, a); mpfr_mul(y, y, a, round);)},
      {"softplus", unary("softplus"), 1, -750, 40, SLUICE_EXACT(softplus(y, a);), 4},
      {"elu", unary("elu", "{alpha = 1.0 : f64}"), 1, -40, 2,
       SLUICE_EXACT(mpfr_signbit(a) ? mpfr_expm1(y, a, round) : mpfr_set(y, a, round);), 2},
      // Binary cross-entropy of a logit for the label 1/4.
      {"bce",
       "%share = sluice.full {value = 0.75 : f64, type = T} : () -> T\n"
       "%rest = sluice.mul %share, %0 : (T, T) -> T\n%turned = sluice.neg %0 : (T) -> T\n"
       "%soft = sluice.softplus %turned : (T) -> T\n%y = sluice.add %rest, %soft : (T, T) -> T",
       1, -50, 50,
       SLUICE_EXACT(Exact turned; mpfr_neg(turned, a, round); softplus(y, turned); Exact rest;
                    mpfr_mul_d(rest, a, 0.75, round); mpfr_add(y, y, rest, round);)},
  };
  return functions;
}

double ulpsBetween(double got, const Exact &exact, const Format &format) {
  if (std::isnan(got) || mpfr_nan_p(exact))
    return std::isnan(got) && mpfr_nan_p(exact) ? 0 : INFINITY;
  if (mpfr_zero_p(exact) || mpfr_inf_p(exact))
    return got == mpfr_get_d(exact, MPFR_RNDN) && std::signbit(got) == bool(mpfr_signbit(exact)) ? 0 : INFINITY;
  // The exponents of a unit in the last place of the exact result, and of the first power of two beyond the type.
  int64_t unit = std::max<int64_t>(int64_t(mpfr_get_exp(exact)) - format.bits, format.leastUnit), end = format.end;
  Exact error(got), wanted;
  if (std::isinf(got))
    mpfr_set_si_2exp(error, got < 0 ? -1 : 1, end, MPFR_RNDN);
  mpfr_set(wanted, exact, MPFR_RNDN);
  if (mpfr_get_exp(exact) > end) {
    mpfr_set_si_2exp(wanted, mpfr_signbit(exact) ? -1 : 1, end, MPFR_RNDN);
    unit = end - format.bits;
  }
  mpfr_sub(error, error, wanted, MPFR_RNDN);
  mpfr_mul_2si(error, error, -unit, MPFR_RNDN);
  return std::fabs(mpfr_get_d(error, MPFR_RNDN));
}

double relativeError(double got, const Exact &exact) {
  if (std::isnan(got) || std::isinf(got) || mpfr_nan_p(exact) || mpfr_inf_p(exact)) {
    double wanted = mpfr_get_d(exact, MPFR_RNDN);
    return got == wanted || (std::isnan(got) && std::isnan(wanted)) ? 0 : INFINITY;
  }
  Exact error(got), size;
  mpfr_sub(error, error, exact, MPFR_RNDN);
  mpfr_abs(size, exact, MPFR_RNDN);
  mpfr_add_ui(size, size, 1, MPFR_RNDN);
  mpfr_div(error, error, size, MPFR_RNDN);
  return std::fabs(mpfr_get_d(error, MPFR_RNDN));
}

} // namespace sluice::cpu::testing
