// Compares f32 and f64 functions on AVX2 and AVX-512 with MPFR. Arguments cover all magnitudes, including subnormals,
// the range where results vary most, and special values. The bounds are those of the table in the op reference.
// SLUICE_TEST_FULL=1 tests 32 times as many arguments and reports the errors that the table should list.
#include "tests/Worse.h"
#include "tests/backends/cpu/ExactFunctions.h"
#include "tests/backends/cpu/KernelRun.h"

#include <bit>
#include <cmath>
#include <cstdlib>
#include <fmt/format.h>
#include <fstream>
#include <gtest/gtest.h>
#include <map>
#include <random>

namespace sluice::cpu::testing {
namespace {

constexpr int64_t kCount = 1 << 11;

int64_t rounds() { return std::getenv("SLUICE_TEST_FULL") ? 32 : 1; }

std::vector<Target> targets() {
  std::vector<Target> all{llvm::cantFail(Target::of("haswell"))};
  if (Target::host().has("avx512f"))
    all.push_back(llvm::cantFail(Target::of("skylake-avx512")));
  return all;
}

/// Random arguments of one operand in a format.
class Arguments {
public:
  Arguments(const Format &format, double low, double high, uint64_t seed)
      : format(format), random(seed), between(low, high) {}

  double draw() {
    switch (random() % 4) {
    case 0:
      return rounded(between(random));
    case 1: // magnitudes around 1
      return rounded(
          std::ldexp(between.b() > 0 && between.a() >= 0 ? 1 + unit() : (unit() * 4 - 2), int(random() % 40) - 30));
    case 2: // whole numbers
      return std::floor(rounded(between(random)));
    default:
      return anyFinite();
    }
  }

private:
  double unit() { return double(random() >> 11) * 0x1p-53; }
  double rounded(double x) const { return format.bits == 24 ? double(float(x)) : x; }
  double anyFinite() {
    for (;;) {
      double x = format.bits == 24 ? double(std::bit_cast<float>(uint32_t(random()))) : std::bit_cast<double>(random());
      if (std::isfinite(x))
        return x;
    }
  }

  Format format;
  std::mt19937_64 random;
  std::uniform_real_distribution<double> between;
};

std::vector<double> specialValues(const Format &format) {
  double unit = std::ldexp(1, format.leastUnit), normal = std::ldexp(1, format.leastUnit + format.bits - 1),
         whole = std::ldexp(1, format.bits);
  std::vector<double> values{NAN};
  for (double size : {0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 80.0, 1e10, unit, normal - unit, normal, whole - 1, whole,
                      2 * whole, std::ldexp(1 - std::ldexp(1, -format.bits), format.end), double(INFINITY)})
    values.insert(values.end(), {size, -size});
  return values;
}

/// A function compiled for a format and a target.
class Measured {
public:
  Measured(const Function &function, const Format &format, const Target &target)
      : function(function), format(format), type(fmt::format("tensor<{}x{}>", kCount, format.name)),
        kernel(std::vector<std::string>(function.operands, type), bodyText(), "%y : " + type, 1, "", target) {
    EXPECT_TRUE(kernel.lowered()) << function.name << ": " << kernel.diagnostics();
    if (kernel.lowered())
      kernel.randomize(0, 1);
  }

  /// Sets the operands and runs the kernel.
  template <class Make> void run(Make make) {
    for (int64_t i = 0; i < kCount; ++i)
      for (unsigned operand = 0; operand < function.operands; ++operand)
        kernel.inputs[operand].data[size_t(i)] = make(i, operand);
    kernel.run(1);
  }

  void runDrawn(uint64_t seed) {
    bool isSingle = format.bits == 24;
    double low = isSingle ? std::max(function.low, -110.0) : function.low,
           high = isSingle ? std::min(function.high, 95.0) : function.high;
    Arguments a(format, low, high, 2 * seed), b(format, low, high, 2 * seed + 1);
    run([&](int64_t, unsigned operand) { return operand ? b.draw() : a.draw(); });
  }

  /// Runs on all special values; for two operands, on all pairs.
  void runSpecial() {
    std::vector<double> values = specialValues(format);
    run([&](int64_t i, unsigned operand) {
      return values[(operand ? size_t(i) / values.size() : size_t(i)) % values.size()];
    });
  }

  /// The largest error and where it occurs. `error` is a function of the result and the exact result.
  template <class Error> std::pair<double, std::string> worst(Error error) {
    ir::HostTensor got = kernel.output(0);
    std::pair<double, std::string> found{0, ""};
    for (size_t i = 0; i < size_t(kCount); ++i) {
      double first = kernel.inputs[0].data[i], second = function.operands == 2 ? kernel.inputs[1].data[i] : 0;
      Exact a(first), b(second), y;
      function.exact(y, a, b);
      double now = error(got.data[i], y);
      if (!(now <= found.first))
        found = {test::worse(found.first, now),
                 fmt::format("{}({}{}) in {} is {}", function.name, first,
                             function.operands == 2 ? fmt::format(", {}", second) : "", format.name, got.data[i])};
    }
    return found;
  }

  std::pair<double, std::string> worstInUlps() {
    return worst([&](double got, const Exact &exact) { return ulpsBetween(got, exact, format); });
  }

  bool isCompiled() const { return kernel.lowered(); }

private:
  std::string bodyText() const {
    std::string text = function.body;
    for (size_t at = text.find('T'); at != std::string::npos; at = text.find('T', at + type.size()))
      text.replace(at, 1, type);
    return text;
  }

  const Function &function;
  Format format;
  std::string type;
  KernelRun kernel;
};

/// The accuracy table of the op reference: the bounds of f32 and f64 by function name.
const std::map<std::string, std::pair<double, double>> &bounds() {
  static const auto table = [] {
    std::map<std::string, std::pair<double, double>> table;
    std::ifstream file(ACCURACY_TABLE);
    std::string line;
    while (std::getline(file, line)) {
      char name[32];
      double single, twice;
      if (std::sscanf(line.c_str(), "| `%31[a-z0-9]` | %lf | %lf |", name, &single, &twice) == 3)
        table[name] = {single, twice};
    }
    return table;
  }();
  return table;
}

class Accuracy : public ::testing::TestWithParam<Function> {};

/// The largest error over all targets and rounds, rounded up to tenths as in the table.
double tabledError(const Function &function, const Format &format) {
  double worst = 0;
  std::string where;
  for (const Target &target : targets()) {
    Measured measured(function, format, target);
    if (!measured.isCompiled())
      return INFINITY;
    for (int64_t round = 0; round < rounds(); ++round) {
      measured.runDrawn(uint64_t(round));
      auto [error, text] = measured.worstInUlps();
      if (!(error <= worst))
        worst = error, where = text;
    }
  }
  std::printf("%.3f ulp: %s\n", worst, where.c_str());
  return std::ceil(worst * 10) / 10;
}

TEST_P(Accuracy, IsThatOfTheTable) {
  const Function &function = GetParam();
  ASSERT_TRUE(bounds().count(function.name)) << "the table has no row of " << function.name;
  auto [inSingle, inDouble] = bounds().at(function.name);
  EXPECT_TRUE(inSingle <= 2 && inDouble <= 4) << "what is allowed at most";
  double single = tabledError(function, kSingle), twice = tabledError(function, kDouble);
  EXPECT_TRUE(single <= inSingle) << function.name << " in f32 is off by " << single;
  EXPECT_TRUE(twice <= inDouble) << function.name << " in f64 is off by " << twice;
  if (rounds() > 1) // the table lists the errors of longer sweeps, of up to one float in 61
    EXPECT_TRUE(single > inSingle - 0.5 && twice > inDouble - 0.5)
        << fmt::format("the row of {} should say {:.1f} and {:.1f}", function.name, single, twice);
}

TEST_P(Accuracy, HoldsForSpecialValues) {
  const Function &function = GetParam();
  for (const Target &target : targets())
    for (const Format &format : {kSingle, kDouble}) {
      Measured measured(function, format, target);
      ASSERT_TRUE(measured.isCompiled());
      measured.runSpecial();
      auto [error, text] = measured.worstInUlps();
      EXPECT_TRUE(error <= (format.bits == 24 ? 2 : 4)) << text << ", off by " << error << " on " << target.cpu;
    }
}

std::string nameOf(const ::testing::TestParamInfo<Function> &info) {
  std::string name = info.param.name;
  std::erase_if(name, [](char letter) { return !isalnum(letter); });
  return name;
}

INSTANTIATE_TEST_SUITE_P(Functions, Accuracy, ::testing::ValuesIn(elementaryFunctions()), nameOf);

class CompositeAccuracy : public ::testing::TestWithParam<Function> {};

// Results may cancel, for example those of gelu far below 0. The tolerance is 8 units of the type's precision, relative
// to the result and to 1. Small results of functions that do not cancel, for example of softplus far below 0, have all
// digits: their tolerance is relative to the result alone.
TEST_P(CompositeAccuracy, IsNearlyThatOfTheType) {
  const Function &function = GetParam();
  for (const Target &target : targets())
    for (const Format &format : {kSingle, kDouble}) {
      Measured measured(function, format, target);
      ASSERT_TRUE(measured.isCompiled());
      double allowed = std::ldexp(8, -format.bits);
      for (int64_t round = -1; round < rounds(); ++round) {
        round < 0 ? measured.runSpecial() : measured.runDrawn(uint64_t(round));
        auto [error, text] = measured.worst(relativeError);
        EXPECT_TRUE(error <= allowed) << text << ", off by " << error << " on " << target.cpu;
        auto [ulps, place] = measured.worstInUlps();
        EXPECT_TRUE(ulps <= function.ulps) << place << ", off by " << ulps << " ulp on " << target.cpu;
      }
    }
}

INSTANTIATE_TEST_SUITE_P(Functions, CompositeAccuracy, ::testing::ValuesIn(compositeFunctions()), nameOf);

} // namespace
} // namespace sluice::cpu::testing
