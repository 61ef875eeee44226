// Functions of one f32: accuracy in ulp over many magnitudes, and infinities, NaN and signed zeros.
#include "tests/Worse.h"
#include "tests/backends/cpu/KernelRun.h"

#include <cmath>
#include <gtest/gtest.h>

namespace sluice::cpu::testing {
namespace {

constexpr int64_t kCount = 1 << 16;

struct Function {
  const char *op;
  double (*reference)(double);
  double low, high, ulps; // magnitudes are drawn between low and high, evenly in their logarithms, with both signs
  bool positive = false;
};

double ulpsBetween(double got, double wanted) {
  float rounded = float(wanted);
  if (got == rounded || (std::isnan(got) && std::isnan(wanted)))
    return 0;
  double spacing =
      std::max<double>(std::nextafter(std::fabs(rounded), INFINITY) - std::fabs(rounded), std::ldexp(1.0, -149));
  return std::fabs(got - wanted) / spacing;
}

class Math : public ::testing::TestWithParam<Function> {
protected:
  const std::string x = "tensor<65536xf32>";
  std::string text = std::string("%a = sluice.") + GetParam().op + " %0 : (" + x + ") -> " + x;
};

TEST_P(Math, IsAccurate) {
  const Function &f = GetParam();
  KernelRun kernel({x}, text, "%a : " + x, 1);
  ASSERT_TRUE(kernel.lowered()) << kernel.diagnostics();
  kernel.randomize(std::log(f.low), std::log(f.high));
  for (int64_t i = 0; i < kCount; ++i) {
    double &value = kernel.inputs[0].data[i];
    value = float(std::exp(value)) * (i % 2 && !f.positive ? -1 : 1);
  }
  kernel.run(1);
  ir::HostTensor got = kernel.output(0);
  double worst = 0, at = 0;
  for (int64_t i = 0; i < kCount; ++i) {
    double error = ulpsBetween(got.data[i], f.reference(kernel.inputs[0].data[i]));
    if (!(error <= worst))
      worst = test::worse(worst, error), at = kernel.inputs[0].data[i];
  }
  RecordProperty("ulps", std::to_string(worst));
  printf("%s: %.2f ulp at %.9g\n", f.op, worst, at);
  EXPECT_LE(worst, f.ulps) << f.op << " at " << at;
}

TEST_P(Math, KeepsSpecialValues) {
  const Function &f = GetParam();
  KernelRun kernel({x}, text, "%a : " + x, 1);
  ASSERT_TRUE(kernel.lowered()) << kernel.diagnostics();
  kernel.randomize(1, 1.5);
  const double special[] = {0.0, -0.0, INFINITY, -INFINITY, NAN};
  std::copy(std::begin(special), std::end(special), kernel.inputs[0].data.begin());
  kernel.run(1);
  ir::HostTensor got = kernel.output(0);
  for (int i = 0; i < 5; ++i) {
    double wanted = f.reference(special[i]), value = got.data[i];
    EXPECT_TRUE(std::isnan(wanted) ? std::isnan(value) : value == wanted && std::signbit(value) == std::signbit(wanted))
        << f.op << "(" << special[i] << ") is " << value << ", not " << wanted;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Functions, Math,
    ::testing::Values(Function{"exp", [](double x) { return std::exp(x); }, 1e-6, 87, 2},
                      Function{"tanh", [](double x) { return std::tanh(x); }, 1e-6, 20, 2},
                      Function{"erf", [](double x) { return std::erf(x); }, 1e-6, 6, 2},
                      Function{"sin", [](double x) { return std::sin(x); }, 1e-6, 1e6, 2},
                      Function{"cos", [](double x) { return std::cos(x); }, 1e-6, 1e6, 2},
                      Function{"log", [](double x) { return std::log(x); }, 1e-30, 1e30, 2, true},
                      Function{"log1p", [](double x) { return std::log1p(x); }, 1e-6, 1e6, 4, true},
                      Function{"sigmoid", [](double x) { return 1 / (1 + std::exp(-x)); }, 1e-6, 80, 4},
                      Function{"sqrt", [](double x) { return std::sqrt(x); }, 1e-30, 1e30, 0.5, true},
                      Function{"reciprocal", [](double x) { return 1 / x; }, 1e-30, 1e30, 0.5}),
    [](const auto &info) { return std::string(info.param.op); });

// Values and exponents of every magnitude; whole ones for negative bases.
TEST(Pow, IsAccurate) {
  const std::string x = "tensor<65536xf32>";
  KernelRun kernel({x, x}, "%a = sluice.pow %0, %1 : (" + x + ", " + x + ") -> " + x, "%a : " + x, 1);
  ASSERT_TRUE(kernel.lowered()) << kernel.diagnostics();
  kernel.randomize(-1, 1);
  std::vector<double> &base = kernel.inputs[0].data, &exponent = kernel.inputs[1].data;
  for (int64_t i = 0; i < kCount; ++i) {
    base[i] = float(std::exp(base[i] * (i % 3 ? 4 : 100)));
    exponent[i] = float(exponent[i] * (i % 5 ? 20 : 0.01));
    if (i % 2)
      base[i] = -base[i], exponent[i] = std::floor(exponent[i]);
  }
  kernel.run(1);
  ir::HostTensor got = kernel.output(0);
  double worst = 0;
  for (int64_t i = 0; i < kCount; ++i) {
    double error = ulpsBetween(got.data[i], std::pow(base[i], exponent[i]));
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
                                    : ulpsBetween(value, wanted) <= 1 && std::signbit(value) == std::signbit(wanted);
    EXPECT_TRUE(equal) << special[i / kValues] << " ^ " << special[i % kValues] << " is " << value << ", not "
                       << wanted;
  }
}

// Tests that no lane is handed to the C library, and that squares are products.
TEST(Pow, IsVectorised) {
  const std::string x = "tensor<64xf32>";
  KernelRun general({x, x}, "%a = sluice.pow %0, %1 : (" + x + ", " + x + ") -> " + x, "%a : " + x, 1);
  ASSERT_TRUE(general.lowered()) << general.diagnostics();
  EXPECT_EQ(general.assembly.find("powf"), std::string::npos);
  KernelRun square({x},
                   "%two = sluice.full {value = 2.0 : f64, type = " + x + "} : () -> " + x +
                       "\n%a = sluice.pow %0, %two : (" + x + ", " + x + ") -> " + x,
                   "%a : " + x, 1);
  ASSERT_TRUE(square.lowered()) << square.diagnostics();
  EXPECT_LT(square.assembly.size(), general.assembly.size() / 2);
}

} // namespace
} // namespace sluice::cpu::testing
