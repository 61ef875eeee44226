// Random graphs trained in bf16 and f16 from weights in f32, against the same graphs in double precision. How far a
// result may be off follows from the graph: the reference runs again with the result of each op rounded, up or down at
// random, to as many bits as the narrow type has. A number that does not fit into the range of the type, such as an
// epsilon that becomes 0, is not covered by this, and fails. Runs a sample by default, and 200 graphs with
// SLUICE_TEST_FULL=1.
#include "tests/Worse.h"
#include "tests/e2e/Harness.h"
#include "tests/e2e/Portable.h"
#include "tests/e2e/devices/RandomGraph.h"

#include <cmath>
#include <cstdlib>
#include <gtest/gtest.h>
#include <random>

using namespace mlir;
using namespace sluice::test;
using sluice::ir::Precision;

namespace {

constexpr int64_t kBatch = 6;
constexpr uint32_t kGraphs = 200, kGraphsInPart = 8;
/// Where gradients are rounded as they are in a training run whose scale has fallen.
constexpr double kLossScale = 16;
/// Results move by more than a few draws show.
constexpr double kLeeway = 4;
constexpr uint64_t kDraws = 8, kMoreDraws = 40;

/// The graph for a seed; the buffer of its optimizer is the gradient.
std::string textOf(uint32_t seed) {
  std::string text = randomGraph(seed, kBatch), none = "momentum = 0.000000e+00";
  return text.find(none) == std::string::npos ? text : replaced(text, none, "momentum = 9.000000e-01");
}

Values inputs(uint32_t seed) {
  std::string key = "mixed/" + std::to_string(seed);
  std::vector<float> x = portableUniform(key, size_t(kBatch * kRandomFeatures), -1, 1);
  std::vector<int64_t> labels = portableIntegers(key + "/label", size_t(kBatch), kRandomClasses);
  return {{"image", {x.begin(), x.end()}}, {"label", {labels.begin(), labels.end()}}};
}

/// A number between two neighbors of so many bits becomes one of them; the nearer one is more likely.
double roundedAtRandom(double number, int bits, std::mt19937_64 &random) {
  if (number == 0 || !std::isfinite(number))
    return number;
  double unit = std::ldexp(1.0, std::ilogb(number) + 1 - bits), below = std::floor(number / unit) * unit;
  double share = std::uniform_real_distribution<double>(0, 1)(random);
  return share < (number - below) / unit ? below + unit : below;
}

/// The prediction, the loss, and the gradients of a step at the rate 0.
template <typename Model> Values resultsOf(Model &model, const std::vector<std::string> &gradients, uint32_t seed) {
  Values results{{"logits", model.run("predict", inputs(seed), kBatch).at("logits")}};
  model.setState("lr", {0});
  results["loss"] = model.run("train_step", inputs(seed), kBatch).at("loss");
  for (const std::string &name : gradients)
    results[name] = model.state(name);
  return results;
}

/// A graph in double precision, with the initial values of a compiled model.
class Truth {
public:
  Truth(const std::string &text, const Compiled &model, uint32_t seed) : seed(seed), reference(text) {
    for (const sluice::runtime::State &state : model.plan().states) {
      if (state.isDerived())
        continue;
      states[state.name] = model.state(state.name);
      if (state.name.ends_with(".momentum_buffer"))
        gradients.push_back(state.name);
    }
    exact = run({});
  }

  /// The largest change of each result in so many draws.
  std::map<std::string, double> changes(int bits, uint64_t draws) {
    std::map<std::string, double> most;
    for (uint64_t draw = 0; draw < draws; ++draw) {
      std::mt19937_64 random(draw);
      auto round = [&](Operation *op, ArrayRef<sluice::ir::HostTensor>,
                       MutableArrayRef<sluice::ir::HostTensor> results) {
        for (auto [result, tensor] : llvm::zip(op->getResults(), results))
          if (isa<FloatType>(cast<RankedTensorType>(result.getType()).getElementType()))
            for (double &number : tensor.data)
              number = roundedAtRandom(number, bits, random);
      };
      for (const auto &[name, values] : run({.observer = round}))
        most[name] = worse(most[name], largestDifference(values, exact.at(name)));
    }
    return most;
  }

  std::vector<std::string> gradients;
  Values exact;

private:
  Values run(const sluice::ir::InterpreterOptions &options) {
    reference.options = options;
    for (auto &[name, value] : reference.states)
      if (auto known = states.find(name); known != states.end())
        value.data = known->second;
    return resultsOf(reference, gradients, seed);
  }

  uint32_t seed;
  Interpreted reference;
  Values states; // before the first step
};

class MixedGraphs : public testing::TestWithParam<std::tuple<uint32_t, Precision>> {
protected:
  void SetUp() override {
    if (std::get<0>(GetParam()) >= kGraphsInPart && !std::getenv("SLUICE_TEST_FULL"))
      GTEST_SKIP() << "some of the graphs run unless SLUICE_TEST_FULL is set";
  }
};

/// The first result that is further off than it may be; empty if there is none.
std::string problemOf(const Values &actual, const Values &exact, const std::map<std::string, double> &changes,
                      int bits) {
  for (const auto &[name, values] : exact) {
    double largest = 0;
    for (double value : values)
      largest = std::max(largest, std::abs(value));
    double error = largestDifference(actual.at(name), values),
           allowed = kLeeway * (changes.at(name) + std::ldexp(largest, -bits));
    if (!(error <= allowed))
      return name + " is off by " + std::to_string(error) + ", allowed " + std::to_string(allowed) + ", largest " +
             std::to_string(largest);
  }
  return "";
}

} // namespace

TEST_P(MixedGraphs, AreOffByRoundingAlone) {
  auto [seed, precision] = GetParam();
  int bits = precision == Precision::F16 ? 11 : 8;
  std::string text = textOf(seed);
  sluice::CompileOptions options;
  options.precision = dtypeOf(precision);
  Compiled model(text, options);
  model.init(seed);
  Truth truth(text, model, seed);
  if (precision == Precision::F16)
    model.setState("loss_scale", {kLossScale});
  Values results = resultsOf(model, truth.gradients, seed);
  if (precision == Precision::F16)
    EXPECT_EQ(model.state("loss_scale"), std::vector{kLossScale}) << "the step was skipped";
  std::string problem = problemOf(results, truth.exact, truth.changes(bits, kDraws), bits);
  if (!problem.empty()) // a few draws may miss the one comparison that a rounding decides
    problem = problemOf(results, truth.exact, truth.changes(bits, kMoreDraws), bits);
  EXPECT_EQ(problem, "") << text;
}

INSTANTIATE_TEST_SUITE_P(MixedPrecision, MixedGraphs,
                         testing::Combine(testing::Range(0U, kGraphs),
                                          testing::Values(Precision::BF16, Precision::F16)),
                         [](const auto &info) {
                           return std::string(std::get<1>(info.param) == Precision::F16 ? "F16Of" : "BF16Of") +
                                  std::to_string(std::get<0>(info.param));
                         });
