// A value that one consumer reads at its own indices and another consumer at other indices. Fused kernels must have the
// bits of unfused kernels, and both must agree with the interpreter's float64.
#include "tests/cuda_emu/Doubles.h"
#include "tests/e2e/Harness.h"
#include "tests/e2e/Portable.h"
#include "tests/e2e/devices/ReaderGraph.h"
#include <cmath>
#include <cstdlib>
#include <gtest/gtest.h>
#include <set>

using namespace sluice::test;
using sluice::DType;

namespace {

bool runsAll() { return std::getenv("SLUICE_TEST_FULL"); }

/// Widths below and above a vector, whole vectors, and vectors with a tail. The full matrix has every width from 1 to
/// 24.
std::vector<int64_t> allWidths() {
  std::vector<int64_t> widths;
  for (int64_t width = 1; width <= 24; ++width)
    widths.push_back(width);
  widths.insert(widths.end(), {31, 64, 65});
  return widths;
}

/// All readers of a root at every width; without SLUICE_TEST_FULL each at one width, so that every width occurs.
std::vector<ReaderCase> casesOf(const std::string &root) {
  std::vector<int64_t> widths =
      runsAll() ? allWidths() : std::vector<int64_t>{1, 3, 4, 5, 6, 7, 10, 13, 16, 19, 24, 31};
  size_t widthsOfReader = runsAll() ? widths.size() : 1;
  std::vector<ReaderCase> cases;
  size_t next = fnv1a64(root);
  for (const std::string &reader : secondReaders())
    for (size_t i = 0; i < widthsOfReader; ++i, ++next)
      cases.push_back({root, reader, widths[next % widths.size()], int(next / widths.size() % kReaderForms)});
  return cases;
}

/// Values for the graph's inputs.
Values readerInputs(const std::string &graph, RowKind rows) {
  int64_t features = kReaderRows * kReaderTerms * (rows == RowKind::Merged ? kReaderTokens : 1);
  auto values = [&](const std::string &name, int64_t count) {
    std::vector<float> drawn = portableUniform("readers/" + name, size_t(count), -1, 1);
    return std::vector<double>(drawn.begin(), drawn.end());
  };
  Values inputs{{"features", values("features", features)}, {"start", {0}}};
  if (rows != RowKind::Merged)
    inputs["images"] = values("images", features * kReaderHeight * kReaderWidth);
  std::erase_if(inputs, [&](const auto &input) { return graph.find("\"" + input.first + "\"") == std::string::npos; });
  return inputs;
}

struct Result {
  Values initial, predicted;
  std::vector<std::byte> states;
};

Result resultOf(const std::string &text, RowKind rows, bool fuses, bool trains, const std::string &cpu) {
  sluice::CompileOptions options;
  options.fuse = fuses;
  options.target_cpu = cpu;
  Compiled model(text, options);
  model.init(11);
  Result result;
  for (const sluice::runtime::State &state : model.plan().states)
    result.initial[state.name] = model.state(state.name);
  Values inputs = readerInputs(text, rows);
  result.predicted = model.run("predict", inputs, kReaderRows);
  if (trains) {
    model.run("train_step", inputs, kReaderRows);
    result.states = model.stateBytes();
  }
  return result;
}

/// From the initial states of a compiled program.
Values interpreted(const std::string &text, RowKind rows, const Values &initial) {
  Interpreted reference(text);
  for (auto &[name, value] : reference.states)
    value.data = initial.at(name);
  return reference.run("predict", readerInputs(text, rows), kReaderRows);
}

std::string nameOf(const ReaderCase &one) {
  return one.root + " read by " + one.reader + ", " + std::to_string(one.columns) + " columns, form " +
         std::to_string(one.form);
}

/// A comparison: one graph for all cases or, after a difference in trained states, one graph per case.
struct Configuration {
  DType dtype;
  RowKind rows;
  bool trains = false;
  std::string devices = "cpu", cpu = "native";
};

void expectTruth(const std::vector<ReaderCase> &cases, const Configuration &how) {
  std::string text = readerGraph(cases, how.dtype, how.rows, how.devices, how.trains);
  if (text.empty())
    return;
  Result fused = resultOf(text, how.rows, true, how.trains, how.cpu),
         unfused = resultOf(text, how.rows, false, how.trains, how.cpu);
  double allowed = how.dtype == sluice::f64 ? 1e-12 : how.dtype == sluice::f32 ? 2e-5 : 0.06;
  Values truth = interpreted(text, how.rows, fused.initial);
  for (const auto &[output, values] : truth) {
    const ReaderCase &one = cases[size_t(std::stoul(output.substr(1)))];
    const std::vector<double> &actual = fused.predicted.at(output);
    EXPECT_EQ(actual, unfused.predicted.at(output)) << "fused and unfused: " << nameOf(one);
    for (size_t i = 0; i < values.size(); ++i)
      ASSERT_TRUE(std::fabs(actual[i] - values[i]) <= allowed * (1 + std::fabs(values[i])))
          << nameOf(one) << ": " << actual[i] << " instead of " << values[i] << " at " << i;
  }
  if (fused.states == unfused.states)
    return;
  ADD_FAILURE() << "the trained states of fused and unfused programs differ";
  for (const ReaderCase &one : cases) {
    std::string single = readerGraph({one}, how.dtype, how.rows, how.devices, true);
    if (!single.empty() && resultOf(single, how.rows, true, true, how.cpu).states !=
                               resultOf(single, how.rows, false, true, how.cpu).states)
      ADD_FAILURE() << "trained: " << nameOf(one);
  }
}

class SecondReaders : public testing::TestWithParam<std::string> {};

} // namespace

#define SKIP_UNLESS_FULL_OR(isSampled)                                                                                 \
  if (!runsAll() && !(isSampled))                                                                                      \
  GTEST_SKIP() << "for some roots only, unless SLUICE_TEST_FULL is set"

TEST_P(SecondReaders, FusedAndUnfusedPredictionsHaveTheSameBits) {
  expectTruth(casesOf(GetParam()), {sluice::f32, RowKind::Batch});
}

TEST_P(SecondReaders, FusedAndUnfusedTrainingHasTheSameBits) {
  SKIP_UNLESS_FULL_OR(GetParam() == "linear" || GetParam() == "conv3x3");
  expectTruth(casesOf(GetParam()), {sluice::f32, RowKind::Batch, /*trains=*/true});
}

TEST_P(SecondReaders, OtherRowsAndTypesHaveTheSameBits) {
  SKIP_UNLESS_FULL_OR(GetParam() == "linear" || GetParam() == "matmul" || GetParam() == "softmax");
  std::vector<Configuration> all;
  for (DType dtype : {sluice::bf16, sluice::f64, sluice::f32, sluice::f16})
    for (RowKind rows : {RowKind::Static, RowKind::Merged, RowKind::Batch})
      all.push_back({dtype, rows});
  for (size_t i = 0; i < all.size(); ++i)
    if (runsAll() || i % 6 == fnv1a64(GetParam()) % 6)
      expectTruth(casesOf(GetParam()), all[i]);
}

TEST_P(SecondReaders, Avx2HasTheSameBits) {
  if (!__builtin_cpu_supports("avx512f"))
    GTEST_SKIP() << "this machine's own instructions are AVX2";
  SKIP_UNLESS_FULL_OR(GetParam() == "matmul" || GetParam() == "conv3x3");
  expectTruth(casesOf(GetParam()), {sluice::f32, RowKind::Batch, false, "cpu", "haswell"});
}

TEST_P(SecondReaders, AVirtualAcceleratorHasTheSameBits) {
  SKIP_UNLESS_FULL_OR(GetParam() == "linear_bias");
  expectTruth(casesOf(GetParam()), {sluice::f32, RowKind::Batch, /*trains=*/runsAll(), "sim:0"});
}

TEST_P(SecondReaders, AnEmulatedCudaDeviceHasTheSameBits) {
  SKIP_UNLESS_FULL_OR(GetParam() == "linear" || GetParam() == "conv3x3");
  useCudaDoubles(1);
  expectTruth(casesOf(GetParam()), {sluice::f32, RowKind::Batch, false, "cuda:0"});
}

INSTANTIATE_TEST_SUITE_P(Roots, SecondReaders, testing::ValuesIn(readerRoots()),
                         [](const auto &root) { return root.param; });
