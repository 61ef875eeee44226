// The model programs compared with PyTorch's float64 results, from the same initial values and batches.
//
// The comparison covers losses before each update, first gradients and final values. f64 code and the interpreter agree
// to 1e-9. f32 code stays within three times PyTorch's own f32 error, or 1e-6 if that is smaller. If rounding alone
// decides a ReLU, the test names the place and compares f32 with f64 on the same side of it. The large networks run
// with few rows or small images; SLUICE_TEST_FULL=1 also runs them in full size.
#include "runtime/io/Safetensors.h"
#include "tests/e2e/GoldenNetworks.h"
#include "tests/e2e/GoldenTraining.h"
#include "tests/e2e/Kinks.h"
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <gtest/gtest.h>
#include <span>

using namespace sluice::test;
using nlohmann::json;

namespace {

const Network kFewRows[] = {variant(kMlp, "momentum"),
                            variant(kFcnS, "batch2"),
                            variant(kFcnR, "batch8"),
                            variant(kAlexNet, "batch2"),
                            variant(kAlexNetR, "batch8"),
                            variant(kResNet56, "batch4"),
                            variant(kResNet50, "batch2"),
                            variant(kResNet18, "size64"),
                            variant(kMobileNetV2, "size64"),
                            variant(kUNet, "size32"),
                            kSmallLstm,
                            kSmallGpt2};
const Network kQuick[] = {kLeNet,
                          kMlp,
                          kResNet56,
                          variant(kFcnR, "batch8"),
                          variant(kAlexNet, "batch2"),
                          variant(kAlexNetR, "batch8"),
                          variant(kResNet50, "batch2"),
                          kSmallLstm,
                          kLstm,
                          kSmallGpt2};
// Only the first step, except in a full run.
const Network kFirstStepAlone[] = {variant(kFcnR, "batch8"), variant(kAlexNet, "batch2"), variant(kAlexNetR, "batch8"),
                                   variant(kResNet50, "batch2"), kLstm};
const Network kLong[] = {kFcnS, kFcnR, kAlexNet, kAlexNetR, kResNet50, kGpt2};
const Network kExact[] = {variant(kResNet18, "size64"), variant(kMobileNetV2, "size64"), variant(kUNet, "size32")};
// Networks with many parameters, whose ops the others have.
const Network kInterpretedLong[] = {variant(kFcnS, "batch2"), variant(kFcnR, "batch8"), variant(kAlexNet, "batch2"),
                                    variant(kAlexNetR, "batch8"), variant(kResNet50, "batch2")};
const Network kExactLong[] = {variant(kFcnS, "batch2"), kResNet18, kMobileNetV2};
const Network kOptimizers[] = {variant(kMlp, "momentum"),        variant(kMlp, "nesterov"),
                               variant(kMlp, "dampening"),       variant(kMlp, "decay"),
                               variant(kMlp, "dampening_decay"), variant(kMlp, "nesterov_decay")};

std::string nameOf(const testing::TestParamInfo<Network> &info) {
  std::string name = info.param.figures;
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
}

/// The first step of a model with outputs for its kinks.
class FirstStep {
public:
  FirstStep(const Golden &golden, const Kinks &kinks, const sluice::CompileOptions &options)
      : golden(golden), model(withMomentum(kinks.text(), golden), options) {}

  Values outputs, gradients;

  void run(Values nudges) {
    setInitial(model, golden);
    nudges.merge(golden.batch(0));
    outputs = model.run("train_step", nudges, golden.rows());
    gradients = firstGradients(model, golden);
  }

private:
  const Golden &golden;
  Compiled model;
};

constexpr double kTie = 1e-5; ///< bound of rounding for a zero

void nameFlips(const std::vector<Kinks::Flip> &flips, int step) {
  for (const Kinks::Flip &flip : flips) {
    std::printf("  step %2d: %s is %.1e in f32, %.1e in f64\n", step, flip.place.c_str(), flip.single, flip.exact);
    EXPECT_LE(std::fabs(flip.exact), kTie) << "no tie: " << flip.place << " in step " << step;
  }
}

/// Repeats the exact step until it is on the same side of every kink as the single-precision step. A nudge may move a
/// later tie, so that several runs may be needed.
void bringToSides(FirstStep &exact, const FirstStep &single, const Kinks &kinks, int64_t rows) {
  constexpr int kMostRuns = 6;
  Values nudges = kinks.stillness(rows);
  std::vector<Kinks::Flip> flips = kinks.findFlips(single.outputs, exact.outputs);
  for (int run = 0; run < kMostRuns && !flips.empty(); ++run) {
    nameFlips(flips, 0);
    Kinks::nudge(nudges, flips);
    exact.run(nudges);
    flips = kinks.findFlips(single.outputs, exact.outputs);
  }
  EXPECT_TRUE(flips.empty()) << flips.size() << " flips stay, one of them at " << flips.front().place;
}

sluice::CompileOptions precision(bool doubles) {
  sluice::CompileOptions options;
  if (doubles)
    options.dtype = sluice::f64;
  return options;
}

/// Compares first gradients: f64 with the recorded results; f32 with f64 on the same side of every kink, within the
/// yardstick of each tensor.
void expectFirstGradients(const Golden &golden) {
  Kinks kinks(golden.model());
  FirstStep exact(golden, kinks, precision(/*doubles=*/true));
  exact.run(kinks.stillness(golden.rows()));
  expectDigests(exact.gradients, golden.firstGradients(), 1e-9);

  FirstStep single(golden, kinks, precision(/*doubles=*/false));
  single.run(kinks.stillness(golden.rows()));
  bringToSides(exact, single, kinks, golden.rows());
  for (auto &[name, error] : beyondYardstick(single.gradients, exact.gradients, golden.firstGradients()))
    ADD_FAILURE() << "the gradient of " << name << " has an error of " << error;
}

/// Compares losses and final values of a model in f64 and f32.
void expectTraining(const std::string &text, const Golden &golden) {
  Compiled exact(text, precision(/*doubles=*/true)), single(text, precision(/*doubles=*/false));
  GoldenRun truth = train(exact, golden, golden.steps()), ours = train(single, golden, golden.steps());
  expectTruth(truth, golden);
  for (size_t step = 0; step < ours.losses.size(); ++step)
    EXPECT_NEAR(ours.losses[step], truth.losses[step], allowedError(golden.lossError()) * truth.losses[step])
        << "step " << step;
  settleTies(ours, truth, golden.finalValues());
  for (auto &[name, error] : beyondYardstick(ours.final, truth.final, golden.finalValues()))
    ADD_FAILURE() << name << " ends with an error of " << error;
}

void compareInterpreter(const Network &net, int steps) {
  Golden golden(net);
  Interpreted model(golden.model(), "parallel", precision(/*doubles=*/true));
  expectTruth(train(model, golden, steps), golden);
}

/// Compares loss and gradients of the first step.
void compareFirstInterpreted(const Network &net) {
  Golden golden(net);
  std::string text = golden.hasMomentum() ? golden.modelWithOptimizer() : withMomentum(golden.model(), golden);
  Interpreted model(text, "parallel", precision(/*doubles=*/true));
  expectFirstStep(model, golden);
}

/// Compares only f64 code, for recorded results with momentum.
void compareExact(const Network &net) {
  Golden golden(net);
  Compiled model(golden.modelWithOptimizer(), precision(/*doubles=*/true));
  expectFirstStep(model, golden);
  expectTruth(train(model, golden, golden.steps()), golden);
}

/// Names every ReLU and maximum on different sides of its kink in f32 and f64, in each step; each must be a tie within
/// rounding. Every step starts with the f32 states, so that only its own rounding matters.
void compareSides(const Network &net) {
  Golden golden(net);
  Kinks kinks(golden.model());
  Compiled single(kinks.text(), precision(/*doubles=*/false)), exact(kinks.text(), precision(/*doubles=*/true));
  setInitial(single, golden);
  setInitial(exact, golden);
  for (int step = 0; step < golden.steps(); ++step) {
    for (const sluice::runtime::State &state : single.plan().states)
      if (!state.isDerived())
        exact.setState(state.name, single.state(state.name));
    Values input = kinks.stillness(golden.rows());
    input.merge(golden.batch(step));
    nameFlips(
        kinks.findFlips(single.run("train_step", input, golden.rows()), exact.run("train_step", input, golden.rows())),
        step);
  }
}

/// The tensors of a weights file, by name.
std::map<std::string, std::vector<float>> weightsIn(const std::string &name) {
  std::map<std::string, std::vector<float>> weights;
  sluice::runtime::Safetensors file =
      sluice::runtime::readSafetensors(std::string(SLUICE_TEST_DATA) + "/golden/" + name + ".safetensors");
  for (const sluice::runtime::Safetensors::Tensor &tensor : file.tensors()) {
    EXPECT_EQ(tensor.dtype, sluice::runtime::DType::f32) << tensor.name;
    std::vector<float> &values = weights[tensor.name];
    values.resize(tensor.data.size() / sizeof(float));
    std::memcpy(values.data(), tensor.data.data(), tensor.data.size());
  }
  return weights;
}

std::vector<double> widened(const std::vector<float> &values) { return {values.begin(), values.end()}; }

bool isAmong(const Network &net, std::span<const Network> networks) {
  return std::ranges::any_of(networks, [&](const Network &other) { return net.figures == other.figures; });
}

class Exact : public testing::TestWithParam<Network> {};
class Training : public testing::TestWithParam<Network> {};
class Interpreter : public testing::TestWithParam<Network> {};
class Optimizer : public testing::TestWithParam<Network> {};
class Weights : public testing::TestWithParam<Network> {};

} // namespace

TEST_P(Training, AgreesWithPyTorch) {
  bool runsAll = std::getenv("SLUICE_TEST_FULL");
  if (isAmong(GetParam(), kLong) && !runsAll)
    GTEST_SKIP() << "ten steps of all rows: only with SLUICE_TEST_FULL=1";
  Golden golden(GetParam());
  expectFirstGradients(golden);
  if (!isAmong(GetParam(), kFirstStepAlone) || runsAll)
    expectTraining(golden.model(), golden);
}

INSTANTIATE_TEST_SUITE_P(Golden, Training, testing::ValuesIn(kQuick), nameOf);
INSTANTIATE_TEST_SUITE_P(GoldenLong, Training, testing::ValuesIn(kLong), nameOf);

TEST_P(Exact, AgreesWithPyTorch) {
  if (isAmong(GetParam(), kExactLong) && !std::getenv("SLUICE_TEST_FULL"))
    GTEST_SKIP() << "large images, or layers: only with SLUICE_TEST_FULL=1";
  compareExact(GetParam());
}

INSTANTIATE_TEST_SUITE_P(Golden, Exact, testing::ValuesIn(kExact), nameOf);
INSTANTIATE_TEST_SUITE_P(GoldenLong, Exact, testing::ValuesIn(kExactLong), nameOf);

TEST_P(Interpreter, AgreesWithPyTorch) {
  if (isAmong(GetParam(), kInterpretedLong) && !std::getenv("SLUICE_TEST_FULL"))
    GTEST_SKIP() << "many parameters: only with SLUICE_TEST_FULL=1";
  compareFirstInterpreted(GetParam());
}

INSTANTIATE_TEST_SUITE_P(Golden, Interpreter, testing::ValuesIn(kFewRows), nameOf);

// Momentum, Nesterov momentum, dampening and weight decay, alone and combined.
TEST_P(Optimizer, AgreesWithPyTorch) {
  Golden golden(GetParam());
  expectTraining(golden.modelWithOptimizer(), golden);
}

INSTANTIATE_TEST_SUITE_P(Golden, Optimizer, testing::ValuesIn(kOptimizers), nameOf);

// The files that PyTorch wrote contain the values of the recorded results, in PyTorch's f32.
TEST_P(Weights, AreThoseThatPyTorchWrote) {
  Golden golden(GetParam());
  std::map<std::string, std::vector<float>> initial = weightsIn(GetParam().name + ".init"),
                                            final = weightsIn(GetParam().name + ".final");
  ASSERT_EQ(initial.size(), golden.parameters().size());
  Compiled model(golden.model());
  model.init(0);
  for (auto &[name, values] : initial) {
    EXPECT_EQ(widened(values), golden.initial(name)) << name;
    model.setState(name, widened(values));
  }
  for (int step = 0; step < golden.steps(); ++step)
    model.submit("train_step", golden.batch(step), golden.rows());
  for (auto &[name, values] : final) {
    double theirs = golden.finalValues().at(name)["f32_rel_error"];
    EXPECT_LE(relativeError(model.state(name), widened(values)), theirs + allowedError(theirs)) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Golden, Weights, testing::Values(kLeNet, kMlp), nameOf);

TEST(Golden, MlpInterpreted) { compareInterpreter(kMlp, 20); }
TEST(Golden, SmallLstmInterpreted) { compareInterpreter(kSmallLstm, 4); }
TEST(Golden, LeNetInterpreted) { compareInterpreter(kLeNet, std::getenv("SLUICE_TEST_FULL") ? 20 : 4); }
TEST(Golden, LeNetFlipsOnlyAtTies) { compareSides(kLeNet); }
TEST(Golden, MlpFlipsOnlyAtTies) { compareSides(kMlp); }

// A tensor with NaN exceeds every yardstick and is on neither side of a kink.
TEST(Golden, WhatIsNoNumberIsNoticed) {
  json digests = {{"w", {{"f32_rel_error", 1e-3}}}};
  EXPECT_EQ(beyondYardstick({{"w", {1, 2}}}, {{"w", {1, 2}}}, digests).size(), 0u);
  EXPECT_EQ(beyondYardstick({{"w", {1, NAN}}}, {{"w", {1, 2}}}, digests).size(), 1u);
  EXPECT_EQ(beyondYardstick({{"w", {1, 2}}}, {{"w", {NAN, 2}}}, digests).size(), 1u);
}

// 1 + 1e-9 is 1 in f32: it ties with 1, but is greater in f64 unless nudged.
TEST(Golden, AFlipIsNamed) {
  Kinks kinks(R"(
module @flips {
  sluice.model "flips" format 2 phase "model" capacity 2
  sluice.graph ["a", "b"] (%a: tensor<?x3xf32>, %b: tensor<?x3xf32>) {
    %d = sluice.sub %a, %b : (tensor<?x3xf32>, tensor<?x3xf32>) -> tensor<?x3xf32>
    %r = sluice.relu %d : (tensor<?x3xf32>) -> tensor<?x3xf32>
    %m = sluice.max %a, %b : (tensor<?x3xf32>, tensor<?x3xf32>) -> tensor<?x3xf32>
    %y = sluice.add %r, %m : (tensor<?x3xf32>, tensor<?x3xf32>) -> tensor<?x3xf32>
    sluice.output "y", %y : tensor<?x3xf32>
  }
}
)");
  Compiled single(kinks.text(), precision(false)), exact(kinks.text(), precision(true));
  Values input = kinks.stillness(2), nudges = input;
  input.merge(Values{{"a", {2, 0, 1, 1, 1 + 1e-9, 0}}, {"b", {1, 1, 1, 0, 1, 0}}});
  Values inSingle = single.run("eval_step", input, 2);
  std::vector<Kinks::Flip> flips = kinks.findFlips(inSingle, exact.run("eval_step", input, 2));
  ASSERT_EQ(flips.size(), 2u);
  EXPECT_EQ(flips[0].place, "relu of model.mlir:6:10 at [1, 1]");
  EXPECT_EQ(flips[1].place, "max of model.mlir:7:10 at [1, 1]");
  EXPECT_EQ(flips[0].single, 0);
  EXPECT_NEAR(flips[0].exact, 1e-9, 1e-15);

  Kinks::nudge(nudges, flips);
  nudges.merge(input);
  EXPECT_TRUE(kinks.findFlips(inSingle, exact.run("eval_step", nudges, 2)).empty());
  inSingle.at("kink0")[0] = NAN;
  EXPECT_EQ(kinks.findFlips(inSingle, exact.run("eval_step", nudges, 2)).size(), 1u);
}
