// Compares powers, remainders, and functions of a constant NaN with those of C, and functions that a kernel applies many
// times with single ones. accuracy_test.cpp measures errors.
#include "tests/backends/cpu/KernelRun.h"

#include <cmath>
#include <gtest/gtest.h>

namespace sluice::cpu::testing {
namespace {

constexpr int64_t kPowers = 1 << 16;

double ulpsOfSingle(double got, double wanted) {
  float rounded = float(wanted);
  if (got == rounded || (std::isnan(got) && std::isnan(wanted)))
    return 0;
  double spacing =
      std::max<double>(std::nextafter(std::fabs(rounded), INFINITY) - std::fabs(rounded), std::ldexp(1.0, -149));
  return std::fabs(got - wanted) / spacing;
}

// Values and exponents of every magnitude; whole ones for negative bases.
TEST(Pow, IsAccurate) {
  const std::string x = "tensor<65536xf32>";
  KernelRun kernel({x, x}, "%a = sluice.pow %0, %1 : (" + x + ", " + x + ") -> " + x, "%a : " + x, 1);
  ASSERT_TRUE(kernel.lowered()) << kernel.diagnostics();
  kernel.randomize(-1, 1);
  std::vector<double> &base = kernel.inputs[0].data, &exponent = kernel.inputs[1].data;
  for (int64_t i = 0; i < kPowers; ++i) {
    base[i] = float(std::exp(base[i] * (i % 3 ? 4 : 100)));
    exponent[i] = float(exponent[i] * (i % 5 ? 20 : 0.01));
    if (i % 2)
      base[i] = -base[i], exponent[i] = std::floor(exponent[i]);
  }
  kernel.run(1);
  ir::HostTensor got = kernel.output(0);
  double worst = 0;
  for (int64_t i = 0; i < kPowers; ++i) {
    double error = ulpsOfSingle(got.data[i], std::pow(base[i], exponent[i]));
    EXPECT_TRUE(error <= 0.51) << base[i] << " ^ " << exponent[i] << " is " << got.data[i] << ", off by " << error;
    worst = std::fmax(worst, error);
  }
  printf("pow: %.4f ulp\n", worst);
}

// Tests all pairs of special values against C's pow: signs, infinities, NaN, subnormals, odd and even exponents.
TEST(Pow, HasTheSpecialCasesOfC) {
  const float special[] = {0.0f,        -0.0f,        1,           -1,          2,        -2,        3,     -3,
                           0.5f,        -0.5f,        1.5f,        -2.5f,       1e-40f,   -1e-40f,   3e38f, -3e38f,
                           16777215.0f, -16777215.0f, 16777216.0f, 33554432.0f, INFINITY, -INFINITY, NAN};
  constexpr int kValues = std::size(special);
  const std::string x = "tensor<" + std::to_string(kValues * kValues) + "xf32>";
  KernelRun kernel({x, x}, "%a = sluice.pow %0, %1 : (" + x + ", " + x + ") -> " + x, "%a : " + x, 1);
  ASSERT_TRUE(kernel.lowered()) << kernel.diagnostics();
  kernel.randomize(0, 1);
  for (int i = 0; i < kValues * kValues; ++i) {
    kernel.inputs[0].data[i] = special[i / kValues];
    kernel.inputs[1].data[i] = special[i % kValues];
  }
  kernel.run(1);
  ir::HostTensor got = kernel.output(0);
  for (int i = 0; i < kValues * kValues; ++i) {
    float wanted = float(std::pow(double(special[i / kValues]), double(special[i % kValues]))), value = got.data[i];
    bool equal = std::isnan(wanted) ? std::isnan(value)
                                    : ulpsOfSingle(value, wanted) <= 1 && std::signbit(value) == std::signbit(wanted);
    EXPECT_TRUE(equal) << special[i / kValues] << " ^ " << special[i % kValues] << " is " << value << ", not "
                       << wanted;
  }
}

// Tests that no lane calls the C library, and that squares are products.
TEST(Pow, IsVectorised) {
  const std::string x = "tensor<64xf32>";
  KernelRun general({x, x}, "%a = sluice.pow %0, %1 : (" + x + ", " + x + ") -> " + x, "%a : " + x, 1);
  ASSERT_TRUE(general.lowered()) << general.diagnostics();
  EXPECT_EQ(general.assembly().find("powf"), std::string::npos);
  KernelRun square({x},
                   "%two = sluice.full {value = 2.0 : f64, type = " + x + "} : () -> " + x +
                       "\n%a = sluice.pow %0, %two : (" + x + ", " + x + ") -> " + x,
                   "%a : " + x, 1);
  ASSERT_TRUE(square.lowered()) << square.diagnostics();
  EXPECT_LT(square.assembly().size(), general.assembly().size() / 2);
}

// Tests that remainders are exact: C's fmod is exact, and one addition gives the result the sign of b.
template <class Float> void expectRemainders(const std::string &element) {
  const std::string x = "tensor<4096x" + element + ">";
  KernelRun kernel({x, x}, "%a = sluice.remainder %0, %1 : (" + x + ", " + x + ") -> " + x, "%a : " + x, 1);
  ASSERT_TRUE(kernel.lowered()) << kernel.diagnostics();
  const Float special[] = {0,           -0.0,         1,           -1,           3,        Float(-0.7), 5.5, -5.5,
                           Float(1e10), Float(-1e10), Float(1e38), Float(1e-40), INFINITY, -INFINITY,   NAN};
  constexpr size_t kValues = std::size(special);
  kernel.randomize(-100, 100);
  for (size_t i = 0; i < kValues * kValues; ++i)
    kernel.inputs[0].data[i] = special[i / kValues], kernel.inputs[1].data[i] = special[i % kValues];
  kernel.run(1);
  ir::HostTensor got = kernel.output(0);
  for (size_t i = 0; i < 4096; ++i) {
    Float a = Float(kernel.inputs[0].data[i]), b = Float(kernel.inputs[1].data[i]), rest = std::fmod(a, b);
    Float wanted = rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
    EXPECT_TRUE(std::isnan(wanted) ? std::isnan(got.data[i]) : got.data[i] == wanted)
        << "remainder(" << a << ", " << b << ") is " << got.data[i] << ", not " << wanted;
  }
}

TEST(Remainder, IsExact) {
  expectRemainders<float>("f32");
  expectRemainders<double>("f64");
}

// Tests that functions of a constant NaN are NaN, like those of a NaN value: constants are folded.
TEST(NanConstant, StaysNan) {
  for (std::string element : {"f32", "f64"})
    for (const char *op : {"exp",     "expm1", "log",  "log1p", "sqrt",     "sin",   "cos",   "asin",
                           "acos",    "atan",  "sinh", "cosh",  "asinh",    "acosh", "atanh", "tanh",
                           "sigmoid", "erf",   "relu", "silu",  "softplus", "gelu",  "elu",   "reciprocal"}) {
      const std::string x = "tensor<40x" + element + ">", to = " : (" + x + ") -> " + x;
      KernelRun kernel({x},
                       "%nan = sluice.full {value = 0x7FF8000000000000 : f64, type = " + x + "} : () -> " + x +
                           "\n%a = sluice." + op + " %nan" + to + "\n%p = sluice.mul %0, %nan : (" + x + ", " + x +
                           ") -> " + x + "\n%b = sluice." + op + " %p" + to,
                       "%a, %b : " + x + ", " + x, 1);
      ASSERT_TRUE(kernel.lowered()) << kernel.diagnostics();
      kernel.randomize(0, 1);
      kernel.run(1);
      for (unsigned result : {0u, 1u})
        for (double value : kernel.output(result).data)
          EXPECT_TRUE(std::isnan(value)) << op << " of " << element << " is " << value;
    }
}

/// Results of kernels that apply two functions to each of 17 operands. The second operand of pow is the last operand.
class Applied {
public:
  Applied(std::pair<std::string, std::string> functions, std::string element)
      : functions{functions.first, functions.second}, element(std::move(element)) {}

  /// Applies them in one kernel to the operands from `first` to `end`.
  void apply(int first, int end) {
    std::string body, names, types;
    const std::string x = "tensor<" + std::to_string(kValues) + "x" + element + ">";
    for (int i = 0; i < end - first; ++i)
      for (const std::string &function : functions) {
        bool isPow = function == "pow";
        std::string result = "%" + function + std::to_string(i), last = ", %" + std::to_string(end - first);
        body += result + " = sluice." + function + " %" + std::to_string(i) + (isPow ? last : "") + " : (" + x +
                (isPow ? ", " + x : "") + ") -> " + x + "\n";
        names += (names.empty() ? "" : ", ") + result;
        types += (types.empty() ? "" : ", ") + x;
      }
    KernelRun kernel(std::vector(size_t(end - first + 1), x), body, names + " : " + types, 1);
    ASSERT_TRUE(kernel.lowered()) << kernel.diagnostics();
    kernel.randomize(-4, 4);
    for (int i = first; i < end; ++i)
      kernel.inputs[size_t(i - first)].data = valuesOf(i);
    kernel.inputs.back().data = valuesOf(kOperands);
    kernel.run(1);
    for (int i = 0; i < 2 * (end - first); ++i)
      bytes.push_back(kernel.bytes(unsigned(i)));
    callsFunction = kernel.assembly().find("math.") != std::string::npos;
  }

  static constexpr int kOperands = 17, kValues = 64;
  std::vector<test::Bytes> bytes; // of each result
  bool callsFunction = false;     // in the last kernel

private:
  /// Numbers of all magnitudes, and a few special ones.
  static std::vector<double> valuesOf(int operand) {
    std::vector<double> values{0, -0.0, 1, -1, 1e-40, 1e13, -1e30, INFINITY, -INFINITY, NAN};
    for (int i = int(values.size()); i < kValues; ++i)
      values.push_back(float((i % 2 ? 1 : -1) * std::exp((i * kOperands + operand) % 101 * 0.1 - 5)));
    return values;
  }

  std::string functions[2], element;
};

// Tests that calls of a common function, which replace more than 16 copies, give the bits of the copies.
TEST(RepeatedFunction, GivesTheBitsOfSingleOnes) {
  for (std::string element : {"f32", "f64"})
    for (std::pair<std::string, std::string> functions :
         {std::pair("exp", "expm1"), std::pair("log", "log1p"), std::pair("tanh", "erf"), std::pair("sin", "cos"),
          std::pair("asin", "acos"), std::pair("atan", "sinh"), std::pair("cosh", "asinh"), std::pair("acosh", "atanh"),
          std::pair("pow", "exp")}) {
      Applied together(functions, element), apart(functions, element);
      together.apply(0, Applied::kOperands);
      EXPECT_TRUE(together.callsFunction) << functions.first;
      apart.apply(0, Applied::kOperands - 1);
      EXPECT_FALSE(apart.callsFunction) << functions.first;
      apart.apply(Applied::kOperands - 1, Applied::kOperands);
      EXPECT_TRUE(together.bytes == apart.bytes) << functions.first << ", " << functions.second << " of " << element;
    }
}

} // namespace
} // namespace sluice::cpu::testing
