// LeNet and the MLP against PyTorch's figures in float64, from the same initial values and batches.
//
// Losses before each of 20 updates, first gradients and final parameters: code generated for f64 agrees to 1e-9; f32
// code stays within three times PyTorch's own f32 error (or 1e-6 where that is smaller); the interpreter agrees to
// 1e-9. Where rounding alone decides a ReLU, the place is named.
#include "tests/e2e/Harness.h"
#include "tests/e2e/Kinks.h"
#include "tests/e2e/Portable.h"
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

using namespace sluice::test;
using nlohmann::json;

namespace {

struct Network {
  std::string name, program, arguments;
  int64_t batch;
};
constexpr int kSteps = 20;
const Network kLeNet{"lenet", "lenet", "--input f32 --lr 0.02", 256};
const Network kMlp{"mlp", "mlp", "--batch 64", 64};

json golden(const std::string &name) {
  return json::parse(std::ifstream(std::string(SLUICE_TEST_DATA) + "/golden/" + name + ".json"));
}

std::vector<double> widen(const std::vector<float> &values) { return {values.begin(), values.end()}; }

/// The batches of the golden run: noise, and for images a value for each quarter of the picture.
Values batch(const Network &net, int step) {
  std::string key = net.name + "/batch" + std::to_string(step);
  std::vector<float> x = portableUniform(key + "/x", net.batch * 784);
  if (net.name == "lenet") {
    std::vector<float> patch = portableUniform(key + "/patch", net.batch * 4, -1, 1);
    for (int64_t i = 0; i < net.batch; ++i)
      for (int64_t row = 0; row < 28; ++row)
        for (int64_t column = 0; column < 28; ++column)
          x[i * 784 + row * 28 + column] += patch[i * 4 + row / 14 * 2 + column / 14];
  }
  std::vector<int64_t> y = portableIntegers(key + "/y", net.batch, 10);
  return {{"image", widen(x)}, {"label", {y.begin(), y.end()}}};
}

/// The initial value of a parameter: see the golden figures' source for the ranges.
std::vector<double> initial(const Network &net, const std::string &name, const std::vector<int64_t> &shape) {
  size_t count = 1;
  for (int64_t size : shape)
    count *= size;
  double bound = shape.size() >= 2 ? std::sqrt(3.0 / (double(count) / shape[0])) : 0.1;
  return widen(portableUniform(net.name + "/" + name, count, -bound, bound));
}

struct Run {
  std::vector<double> losses;
  Values gradients, final;
};

template <typename Model> void setInitial(Model &model, const Network &net, const json &figures) {
  model.init(0);
  for (auto &[name, digest] : figures["first_gradient"].items())
    model.setState(name, initial(net, name, digest["shape"]));
}

/// What momentum from zero holds after one step, with the weight decay taken off.
template <typename Make>
Values firstGradients(const Network &net, const json &figures, const std::string &text, Make make) {
  double decay = figures["optimizer"]["weight_decay"];
  bool momentum = figures["optimizer"]["momentum"].get<double>() != 0;
  auto model = make(momentum ? text : replaced(text, "momentum = 0.000000e+00", "momentum = 9.000000e-01"));
  setInitial(model, net, figures);
  model.run("train_step", batch(net, 0), net.batch);
  Values gradients;
  for (auto &[name, digest] : figures["first_gradient"].items()) {
    std::vector<double> gradient = model.state(name + ".momentum_buffer"), value = initial(net, name, digest["shape"]);
    for (size_t i = 0; i < gradient.size(); ++i)
      gradient[i] -= decay * value[i];
    gradients[name] = gradient;
  }
  return gradients;
}

/// `steps` steps of a model that `make` makes of its text.
template <typename Make> Run train(const Network &net, const json &figures, int steps, Make make) {
  Run result;
  std::string text = modelText(net.program, net.arguments);
  auto model = make(text);
  setInitial(model, net, figures);
  for (int step = 0; step < steps; ++step)
    result.losses.push_back(model.run("train_step", batch(net, step), net.batch).at("loss")[0]);
  for (auto &[name, digest] : figures["final"].items())
    result.final[name] = model.state(name);
  result.gradients = firstGradients(net, figures, text, make);
  return result;
}

/// Norm and samples of every tensor against the recorded ones, relative to the norm.
void expectDigests(const Values &values, const json &digests, double tolerance) {
  for (auto &[name, digest] : digests.items()) {
    const std::vector<double> &value = values.at(name);
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

double relativeError(const std::vector<double> &value, const std::vector<double> &truth) {
  double difference = 0, norm = 0;
  for (size_t i = 0; i < truth.size(); ++i) {
    difference += (value[i] - truth[i]) * (value[i] - truth[i]);
    norm += truth[i] * truth[i];
  }
  return std::sqrt(difference / norm);
}

void expectWithinYardstick(const Values &values, const Values &truth, const json &digests) {
  for (auto &[name, digest] : digests.items()) {
    double allowed = std::max(3 * digest["f32_rel_error"].get<double>(), 1e-6);
    double error = relativeError(values.at(name), truth.at(name));
    std::printf("  %-14s error %.2e, PyTorch's %.2e\n", name.c_str(), error, digest["f32_rel_error"].get<double>());
    EXPECT_LE(error, allowed) << name;
  }
}

/// Losses and first gradients to 1e-9, and the final parameters if the run got so far.
void expectTruth(const Run &run, const json &figures) {
  for (size_t step = 0; step < run.losses.size(); ++step)
    EXPECT_NEAR(run.losses[step], figures["loss_f64"][step].get<double>(), 1e-9 * std::fabs(run.losses[step]))
        << "step " << step;
  expectDigests(run.gradients, figures["first_gradient"], 1e-9);
  if (run.losses.size() == kSteps)
    expectDigests(run.final, figures["final"], 1e-9);
}

auto makeCompiled(bool doubles) {
  return [doubles](const std::string &text) {
    sluice::passes::PipelineOptions options;
    options.promoteF64 = doubles;
    return Compiled(text, options);
  };
}

void compareWithGolden(const Network &net) {
  json figures = golden(net.name);
  Run truth = train(net, figures, kSteps, makeCompiled(/*doubles=*/true));
  expectTruth(truth, figures);

  Run single = train(net, figures, kSteps, makeCompiled(/*doubles=*/false));
  double allowed = std::max(3 * figures["loss_f32_max_rel_error"].get<double>(), 1e-6);
  for (int step = 0; step < kSteps; ++step)
    EXPECT_NEAR(single.losses[step], truth.losses[step], allowed * truth.losses[step]) << "step " << step;
  expectWithinYardstick(single.gradients, truth.gradients, figures["first_gradient"]);
  expectWithinYardstick(single.final, truth.final, figures["final"]);
}

void compareInterpreterWithGolden(const Network &net, int steps) {
  json figures = golden(net.name);
  expectTruth(train(net, figures, steps,
                    [](const std::string &text) {
                      sluice::passes::PipelineOptions options;
                      options.promoteF64 = true;
                      return Interpreted(text, "train", options);
                    }),
              figures);
}

/// Names every ReLU and maximum that falls on one side of its kink in f32 and on the other in f64, in the forward pass
/// before each step; each is a tie but for rounding, and from step 1 on for what the weights differ by.
void nameFlips(const Network &net) {
  json figures = golden(net.name);
  Kinks kinks(modelText(net.program, net.arguments));
  Compiled single = makeCompiled(false)(kinks.text()), exact = makeCompiled(true)(kinks.text());
  setInitial(single, net, figures);
  setInitial(exact, net, figures);
  for (int step = 0; step < kSteps; ++step) {
    Values input = batch(net, step);
    for (const Kinks::Flip &flip :
         kinks.findFlips(single.run("predict", input, net.batch), exact.run("predict", input, net.batch))) {
      std::printf("  step %2d: %s is %.1e in f32, %.1e in f64\n", step, flip.place.c_str(), flip.single, flip.exact);
      EXPECT_LE(std::fabs(flip.exact), step == 0 ? 1e-5 : 1e-4) << "no tie: " << flip.place << " in step " << step;
    }
    for (Compiled *model : {&single, &exact})
      model->run("train_step", input, net.batch);
  }
}

} // namespace

TEST(Golden, LeNet) { compareWithGolden(kLeNet); }
TEST(Golden, Mlp) { compareWithGolden(kMlp); }
TEST(Golden, MlpInterpreted) { compareInterpreterWithGolden(kMlp, kSteps); }
TEST(Golden, LeNetInterpreted) { compareInterpreterWithGolden(kLeNet, std::getenv("SLUICE_TEST_FULL") ? kSteps : 4); }
TEST(Golden, LeNetFlipsOnlyAtTies) { nameFlips(kLeNet); }
TEST(Golden, MlpFlipsOnlyAtTies) { nameFlips(kMlp); }

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
  std::vector<Kinks::Flip> flips = kinks.findFlips(single.run("predict", input, 2), exact.run("predict", input, 2));
  ASSERT_EQ(flips.size(), 2u);
  EXPECT_EQ(flips[0].place, "relu of model.mlir:5:10 at [1, 1]");
  EXPECT_EQ(flips[1].place, "max of model.mlir:6:10 at [1, 1]");
  EXPECT_EQ(flips[0].single, 0);
  EXPECT_NEAR(flips[0].exact, 1e-9, 1e-15);
}
