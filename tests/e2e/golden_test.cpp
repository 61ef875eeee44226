// LeNet and the MLP against PyTorch's figures in float64, from the same initial values and batches.
//
// Losses before each of 20 updates, first gradients and final parameters: code generated for f64 agrees to 1e-9; f32 code
// stays within three times PyTorch's own f32 error (or 1e-6 where that is smaller); the interpreter agrees to 1e-9.
#include "tests/e2e/Harness.h"
#include "tests/e2e/Portable.h"
#include <cmath>
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
const Network kLeNet{"lenet", "lenet", "--input f32 --lr 0.02", 256};
const Network kMlp{"mlp", "mlp", "--batch 64", 64};

json golden(const std::string &name) { return json::parse(std::ifstream(std::string(SLUICE_TEST_DATA) + "/golden/" + name + ".json")); }

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

void setInitial(Compiled &model, const Network &net, const json &figures) {
  model.init(0);
  for (auto &[name, digest] : figures["first_gradient"].items())
    model.setState(name, initial(net, name, digest["shape"]));
}

/// 20 steps; the first gradient is what momentum from zero holds after one step, with the weight decay taken off.
Run train(const Network &net, const json &figures, const sluice::passes::PipelineOptions &options) {
  Run result;
  std::string text = modelText(net.program, net.arguments);
  Compiled model(text, options);
  setInitial(model, net, figures);
  for (int step = 0; step < 20; ++step)
    result.losses.push_back(model.run("train_step", batch(net, step), net.batch).at("loss")[0]);
  for (auto &[name, digest] : figures["final"].items())
    result.final[name] = model.state(name);

  double decay = figures["optimizer"]["weight_decay"];
  bool momentum = figures["optimizer"]["momentum"].get<double>() != 0;
  Compiled first(momentum ? text : replaced(text, "momentum = 0.000000e+00", "momentum = 9.000000e-01"), options);
  setInitial(first, net, figures);
  first.run("train_step", batch(net, 0), net.batch);
  for (auto &[name, digest] : figures["first_gradient"].items()) {
    std::vector<double> gradient = first.state(name + ".momentum_buffer"), value = initial(net, name, digest["shape"]);
    for (size_t i = 0; i < gradient.size(); ++i)
      gradient[i] -= decay * value[i];
    result.gradients[name] = gradient;
  }
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
      EXPECT_NEAR(value[digest["samples"]["index"][i]], digest["samples"]["value"][i].get<double>(), tolerance * expected) << name << " sample " << i;
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

void compareWithGolden(const Network &net) {
  json figures = golden(net.name);
  sluice::passes::PipelineOptions f64;
  f64.promoteF64 = true;
  Run truth = train(net, figures, f64);
  for (int step = 0; step < 20; ++step)
    EXPECT_NEAR(truth.losses[step], figures["loss_f64"][step].get<double>(), 1e-9 * std::fabs(truth.losses[step])) << "step " << step;
  expectDigests(truth.gradients, figures["first_gradient"], 1e-9);
  expectDigests(truth.final, figures["final"], 1e-9);

  Run single = train(net, figures, {});
  double allowed = std::max(3 * figures["loss_f32_max_rel_error"].get<double>(), 1e-6);
  for (int step = 0; step < 20; ++step)
    EXPECT_NEAR(single.losses[step], truth.losses[step], allowed * truth.losses[step]) << "step " << step;
  expectWithinYardstick(single.gradients, truth.gradients, figures["first_gradient"]);
  expectWithinYardstick(single.final, truth.final, figures["final"]);
}

void compareInterpreterWithGolden(const Network &net, int steps) {
  json figures = golden(net.name);
  sluice::passes::PipelineOptions options;
  options.promoteF64 = true;
  Interpreted model(modelText(net.program, net.arguments), "train", options);
  model.run("init", {{"key", {0, 0}}}, 1);
  for (auto &[name, digest] : figures["first_gradient"].items())
    model.states[name].data = initial(net, name, digest["shape"]);
  for (int step = 0; step < steps; ++step) {
    double loss = model.run("train_step", batch(net, step), net.batch).at("loss")[0];
    EXPECT_NEAR(loss, figures["loss_f64"][step].get<double>(), 1e-9 * loss) << "step " << step;
  }
  if (steps < 20)
    return;
  Values final;
  for (auto &[name, digest] : figures["final"].items())
    final[name] = model.states[name].data;
  expectDigests(final, figures["final"], 1e-9);
}

} // namespace

TEST(Golden, LeNet) { compareWithGolden(kLeNet); }
TEST(Golden, Mlp) { compareWithGolden(kMlp); }
TEST(Golden, MlpInterpreted) { compareInterpreterWithGolden(kMlp, 20); }
TEST(Golden, LeNetInterpreted) { compareInterpreterWithGolden(kLeNet, 2); }

