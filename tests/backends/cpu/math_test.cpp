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

} // namespace
} // namespace sluice::cpu::testing
