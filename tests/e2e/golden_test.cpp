// The model programs against PyTorch's figures in float64, from the same initial values and batches.
//
// Losses before each update, first gradients and final values: code generated for f64 agrees to 1e-9; f32 code stays
// within three times PyTorch's own f32 error (or 1e-6 where that is smaller); the interpreter agrees to 1e-9. Where
// rounding alone decides a ReLU, the place is named. Without SLUICE_TEST_FULL=1 the large networks take one step, which
// compares the first loss and all first gradients.
#include "tests/e2e/Golden.h"
#include "tests/e2e/Kinks.h"
#include <cmath>
#include <cstdlib>
#include <gtest/gtest.h>

using namespace sluice::test;
using nlohmann::json;

namespace {

const Network kLeNet{"lenet", {1, 28, 28}, 10, 20}, kMlp{"mlp", {784}, 10, 20};
const Network kNetworks[] = {kLeNet,
                             kMlp,
                             {"alexnet_s", {3, 224, 224}, 1000, 1},
                             {"resnet56", {3, 32, 32}, 10, 10, ".bn2."},
                             {"resnet50", {3, 224, 224}, 1000, 1, ".bn3."}};

struct Trained {
  Values firstStep; ///< what the first step gives, with the distances from kinks
  std::vector<double> losses;
  Values gradients, final; ///< final: only after all steps that were recorded
};

template <typename Model> void setInitial(Model &model, const Golden &golden) {
  model.init(0);
  for (const std::string &name : golden.parameters())
    model.setState(name, golden.initial(name));
}

/// What momentum from zero holds after one step, with the weight decay taken off.
template <typename Model> Values firstGradients(const Model &model, const Golden &golden) {
  Values gradients;
  for (const std::string &name : golden.parameters()) {
    std::vector<double> &gradient = gradients[name] = model.state(name + ".momentum_buffer");
    if (golden.weightDecay() == 0)
      continue;
    std::vector<double> value = golden.initial(name);
    for (size_t i = 0; i < gradient.size(); ++i)
      gradient[i] -= golden.weightDecay() * value[i];
  }
  return gradients;
}

/// One step of the model that shows its kinks, and its gradients by momentum.
template <typename Make> void runFirstStep(const Golden &golden, const Kinks &kinks, Make make, Trained &result) {
  const std::string &text = kinks.text();
  auto model = make(golden.hasMomentum() ? text : replaced(text, "momentum = 0.000000e+00", "momentum = 9.000000e-01"));
  setInitial(model, golden);
  result.firstStep = model.run("train_step", golden.batch(0), golden.rows());
  result.losses = result.firstStep.at("loss");
  result.gradients = firstGradients(model, golden);
}

/// `steps` steps of models that `make` makes of their text.
template <typename Make> Trained train(const Golden &golden, const Kinks &kinks, int steps, Make make) {
  Trained result;
  runFirstStep(golden, kinks, make, result);
  if (steps == 1)
    return result;
  result.losses.clear();
  auto model = make(golden.model());
  setInitial(model, golden);
  for (int step = 0; step < steps; ++step)
    result.losses.push_back(model.run("train_step", golden.batch(step), golden.rows()).at("loss")[0]);
  if (steps == golden.steps())
    for (auto &[name, digest] : golden.finalValues().items())
      result.final[name] = model.state(name);
  return result;
}

/// Norm and samples of every tensor against the recorded ones, relative to the norm.
void expectDigests(const Values &values, const json &digests, double tolerance) {
  for (auto &[name, value] : values) {
    const json &digest = digests[name];
    double norm = 0, expected = digest["norm"];
    for (double x : value)
      norm += x * x;
    EXPECT_NEAR(std::sqrt(norm), expected, tolerance * expected) << name;
    for (size_t i = 0; i < digest["samples"]["index"].size(); ++i)
      EXPECT_NEAR(value[digest["samples"]["index"][i]], digest["samples"]["value"][i].get<double>(),
                  tolerance * expected)
          << name << " sample " << i;
  }
}

/// Losses and first gradients to 1e-9, and the final values if the run got so far.
void expectTruth(const Trained &run, const Golden &golden) {
  for (size_t step = 0; step < run.losses.size(); ++step)
    EXPECT_NEAR(run.losses[step], golden.loss(step), 1e-9 * golden.loss(step)) << "step " << step;
  expectDigests(run.gradients, golden.firstGradients(), 1e-9);
  expectDigests(run.final, golden.finalValues(), 1e-9);
}

double relativeError(const std::vector<double> &value, const std::vector<double> &truth) {
  double difference = 0, norm = 0;
  for (size_t i = 0; i < truth.size(); ++i) {
    difference += (value[i] - truth[i]) * (value[i] - truth[i]);
    norm += truth[i] * truth[i];
  }
  return std::sqrt(difference / norm);
}

double allowedError(double theirs) { return std::max(3 * theirs, 1e-6); }

/// The tensors whose error exceeds their yardstick, and their errors.
std::map<std::string, double> beyondYardstick(const Values &values, const Values &truth, const json &digests) {
  std::map<std::string, double> beyond;
  for (auto &[name, value] : values) {
    double theirs = digests[name]["f32_rel_error"], error = relativeError(value, truth.at(name));
    std::printf("  %-14s error %.2e, PyTorch's %.2e\n", name.c_str(), error, theirs);
    if (error > allowedError(theirs))
      beyond[name] = error;
  }
  return beyond;
}

void nameFlips(const std::vector<Kinks::Flip> &flips, int step) {
  for (const Kinks::Flip &flip : flips) {
    std::printf("  step %2d: %s is %.1e in f32, %.1e in f64\n", step, flip.place.c_str(), flip.single, flip.exact);
    EXPECT_LE(std::fabs(flip.exact), step == 0 ? 1e-5 : 1e-4) << "no tie: " << flip.place << " in step " << step;
  }
}

/// A gradient may exceed its yardstick before a ReLU that flips at a tie. Which ones flip is chance, so that PyTorch's
/// largest error is the yardstick then.
void expectGradientsWithinYardstick(const Trained &single, const Trained &truth, const Golden &golden,
                                    const Kinks &kinks) {
  double largest = 0;
  for (auto &[name, digest] : golden.firstGradients().items())
    largest = std::max(largest, digest["f32_rel_error"].get<double>());
  std::vector<Kinks::Flip> flips = kinks.findFlips(single.firstStep, truth.firstStep);
  nameFlips(flips, 0);
  for (auto &[name, error] : beyondYardstick(single.gradients, truth.gradients, golden.firstGradients())) {
    EXPECT_LE(error, allowedError(largest)) << name;
    EXPECT_TRUE(llvm::any_of(flips, [&name = name](const Kinks::Flip &flip) { return flip.upstream.count(name); }))
        << name << " has an error of " << error << ", and no ReLU after it flips";
  }
}

auto makeCompiled(bool doubles) {
  return [doubles](const std::string &text) {
    sluice::passes::PipelineOptions options;
    options.promoteF64 = doubles;
    return Compiled(text, options);
  };
}

void compareInterpreter(const Network &net, int steps) {
  Golden golden(net);
  auto make = [](const std::string &text) {
    sluice::passes::PipelineOptions options;
    options.promoteF64 = true;
    return Interpreted(text, "train", options);
  };
  expectTruth(train(golden, Kinks(golden.model()), steps, make), golden);
}

/// Names every ReLU and maximum that falls on one side of its kink in f32 and on the other in f64, in each step; each
/// is a tie but for rounding, and from step 1 on for what the weights differ by.
void compareSides(const Network &net) {
  Golden golden(net);
  Kinks kinks(golden.model());
  Compiled single = makeCompiled(false)(kinks.text()), exact = makeCompiled(true)(kinks.text());
  setInitial(single, golden);
  setInitial(exact, golden);
  for (int step = 0; step < golden.steps(); ++step) {
    Values input = golden.batch(step);
    nameFlips(
        kinks.findFlips(single.run("train_step", input, golden.rows()), exact.run("train_step", input, golden.rows())),
        step);
  }
}

class Training : public testing::TestWithParam<Network> {};

} // namespace

TEST_P(Training, AgreesWithPyTorch) {
  Golden golden(GetParam());
  Kinks kinks(golden.model());
  Trained truth = train(golden, kinks, golden.stepsToRun(), makeCompiled(/*doubles=*/true));
  expectTruth(truth, golden);

  Trained single = train(golden, kinks, golden.stepsToRun(), makeCompiled(/*doubles=*/false));
  for (size_t step = 0; step < single.losses.size(); ++step)
    EXPECT_NEAR(single.losses[step], truth.losses[step], allowedError(golden.lossError()) * truth.losses[step])
        << "step " << step;
  expectGradientsWithinYardstick(single, truth, golden, kinks);
  for (auto &[name, error] : beyondYardstick(single.final, truth.final, golden.finalValues()))
    ADD_FAILURE() << name << " ends with an error of " << error;
}

INSTANTIATE_TEST_SUITE_P(Golden, Training, testing::ValuesIn(kNetworks),
                         [](const auto &info) { return info.param.name; });

TEST(Golden, MlpInterpreted) { compareInterpreter(kMlp, 20); }
TEST(Golden, LeNetInterpreted) { compareInterpreter(kLeNet, std::getenv("SLUICE_TEST_FULL") ? 20 : 4); }
TEST(Golden, LeNetFlipsOnlyAtTies) { compareSides(kLeNet); }
TEST(Golden, MlpFlipsOnlyAtTies) { compareSides(kMlp); }

// 1 + 1e-9 is 1 in f32: it ties with 1, and is above it in f64.
TEST(Golden, AFlipIsNamed) {
  Kinks kinks(R"(
module @flips attributes {sluice.capacity = 2 : i64, sluice.model = "flips"} {
  sluice.graph ["a", "b"] (%a: tensor<?x3xf32>, %b: tensor<?x3xf32>) {
    %d = sluice.sub %a, %b : (tensor<?x3xf32>, tensor<?x3xf32>) -> tensor<?x3xf32>
    %r = sluice.relu %d : (tensor<?x3xf32>) -> tensor<?x3xf32>
    %m = sluice.max %a, %b : (tensor<?x3xf32>, tensor<?x3xf32>) -> tensor<?x3xf32>
    %y = sluice.add %r, %m : (tensor<?x3xf32>, tensor<?x3xf32>) -> tensor<?x3xf32>
    sluice.output "y", %y : tensor<?x3xf32>
  }
}
)");
  Compiled single = makeCompiled(false)(kinks.text()), exact = makeCompiled(true)(kinks.text());
  Values input = {{"a", {2, 0, 1, 1, 1 + 1e-9, 0}}, {"b", {1, 1, 1, 0, 1, 0}}};
  std::vector<Kinks::Flip> flips = kinks.findFlips(single.run("eval_step", input, 2), exact.run("eval_step", input, 2));
  ASSERT_EQ(flips.size(), 2u);
  EXPECT_EQ(flips[0].place, "relu of model.mlir:5:10 at [1, 1]");
  EXPECT_EQ(flips[1].place, "max of model.mlir:6:10 at [1, 1]");
  EXPECT_EQ(flips[0].single, 0);
  EXPECT_NEAR(flips[0].exact, 1e-9, 1e-15);
}
