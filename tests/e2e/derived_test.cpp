// Derived states: `predict` and `eval_step` read values that a derivation computes from weights. After each change of
// the weights, they must equal a reference loop in double precision on the current weights.
#include "runtime/instance/Weights.h"
#include "runtime/io/Safetensors.h"
#include "sluice/sluice.h"
#include "tests/Worse.h"
#include "tests/cuda_emu/Doubles.h"
#include "tests/e2e/Harness.h"
#include "tests/e2e/Portable.h"
#include "tests/e2e/replicas/Replicated.h"

#include <cmath>
#include <gtest/gtest.h>

using namespace sluice::test;
using sluice::runtime::Entry;
using sluice::runtime::Plan;
using sluice::runtime::State;
using sluice::runtime::StateKind;

namespace {

constexpr int64_t kRows = 6, kWidth = 5, kHidden = 4;
constexpr double kEps = 1e-5;

/// y = batch_norm(x weight^T + bias). With `isSplit`, the norm runs on the accelerator and its states are on the host.
std::string network(const std::string &devices = "cpu", bool isSplit = false, sluice::DType dtype = sluice::f64) {
  using namespace sluice;
  Graph g("norm");
  g.set_devices(devices);
  g.set_capacity(kRows);
  g.set_dtype(dtype);
  if (isSplit)
    g.set_copies("insert");
  Tensor x = g.input("x", dtype, {Dim{"batch"}, kWidth}), t = g.input("t", dtype, {Dim{"batch"}, kHidden});
  nn::Module root{g};
  nn::Linear linear{&root, "linear", kWidth, kHidden};
  nn::BatchNorm2d norm{&root, "norm", kHidden};
  if (isSplit)
    norm.pin(gpu(0));
  Tensor y = norm(linear(x));
  g.output("y", y);
  g.minimize(square(y - t).mean(), optim::SGD{.lr = 0.1, .momentum = 0.9});
  return g.str();
}

Values batch(const std::string &name = "x") {
  std::vector<float> x = portableUniform(name, size_t(kRows * kWidth), -1, 1),
                     t = portableUniform("t", size_t(kRows * kHidden), -1, 1);
  return {{"x", {x.begin(), x.end()}}, {"t", {t.begin(), t.end()}}};
}

Values withoutTarget(Values inputs) {
  inputs.erase("t");
  return inputs;
}

/// The outputs for the current weights, in plain loops.
std::vector<double> expected(const Compiled &model, const Values &inputs) {
  std::vector<double> weight = model.state("linear.weight"), bias = model.state("linear.bias"),
                      scale = model.state("norm.weight"), shift = model.state("norm.bias"),
                      mean = model.state("norm.running_mean"), var = model.state("norm.running_var"), y;
  for (size_t row = 0; row < size_t(kRows); ++row)
    for (size_t c = 0; c < size_t(kHidden); ++c) {
      double sum = bias[c];
      for (size_t k = 0; k < size_t(kWidth); ++k)
        sum += inputs.at("x")[row * kWidth + k] * weight[c * kWidth + k];
      y.push_back((sum - mean[c]) / std::sqrt(var[c] + kEps) * scale[c] + shift[c]);
    }
  return y;
}

void expectCurrent(Compiled &model, const char *when, double tolerance = 1e-12) {
  Values inputs = withoutTarget(batch());
  std::vector<double> y = model.run("predict", inputs, kRows).at("y");
  EXPECT_LT(largestDifference(y, expected(model, inputs)), tolerance) << when;
}

const Entry &derivation(Compiled &model) {
  const Plan &plan = model.plan();
  const Entry &predict = *plan.findEntry("predict");
  const Entry &part = *plan.partsOf(predict).front();
  EXPECT_EQ(part.derivations.size(), 1u);
  return plan.entries[part.derivations.at(0)];
}

int64_t derivations(Compiled &model) { return model.program().calls(derivation(model)); }

void scale(Compiled &model, const std::string &state, double factor) {
  std::vector<double> values = model.state(state);
  for (double &value : values)
    value = value * factor + 0.25;
  model.setState(state, values);
}

/// Changes weights in all ways, and predicts after each.
void expectCurrentAfterChanges(Compiled &model, double tolerance = 1e-12) {
  model.init(3);
  expectCurrent(model, "init", tolerance);
  for (int step = 0; step < 3; ++step) {
    model.run("train_step", batch(), kRows);
    model.run("eval_step", batch(), kRows);
    expectCurrent(model, "train_step", tolerance);
    expectCurrent(model, "predict", tolerance);
  }
  EXPECT_EQ(derivations(model), 4);
  scale(model, "norm.running_var", 3);
  expectCurrent(model, "set of a source", tolerance);
  EXPECT_EQ(derivations(model), 5);
  scale(model, "norm.bias", 2);
  expectCurrent(model, "set of another state", tolerance);
  EXPECT_EQ(derivations(model), 5);
  model.init(5);
  expectCurrent(model, "second init", tolerance);
  EXPECT_EQ(derivations(model), 6);
}

} // namespace

TEST(Derived, IsComputedOncePerChangeOfItsSources) {
  Compiled model(network());
  expectCurrentAfterChanges(model);
}

TEST(Derived, IsAStateOfPredictionAndEvaluation) {
  Compiled model(network());
  const State *state = model.plan().findState("norm.running_var.mul");
  ASSERT_TRUE(state);
  EXPECT_EQ(state->kind, StateKind::derived);
  EXPECT_EQ(state->shape, (sluice::runtime::Shape{kHidden}));
  ASSERT_EQ(state->sources.size(), 2u);
  EXPECT_EQ(model.plan().states[state->sources[0]].name, "norm.running_var");
  EXPECT_EQ(model.plan().states[state->sources[1]].name, "norm.weight");
  EXPECT_EQ(&model.plan().entries[state->derivation], &derivation(model));
  EXPECT_EQ(model.plan().findEntry("eval_step")->derivations, model.plan().findEntry("predict")->derivations);
  EXPECT_TRUE(model.plan().findEntry("train_step")->derivations.empty());
}

TEST(Derived, IsCurrentOnVirtualAccelerators) {
  for (bool isSplit : {false, true})
    for (const char *sim : {"seed=3", "seed=8"}) {
      Compiled model(network("sim:0", isSplit), {}, {.sim = sim});
      expectCurrentAfterChanges(model);
      EXPECT_EQ(model.program().executor().executedCopies(), model.program().executor().forecast().counts());
    }
}

/// The division and square root of the host's doubles and of CUDA differ by rounding in f32.
TEST(Derived, IsCurrentOnAnEmulatedCudaDevice) {
  useCudaDoubles(/*devices=*/1, /*seed=*/5);
  constexpr double kRounding = 2e-6;
  for (bool isSplit : {false, true}) {
    Compiled model(network("cuda:0", isSplit, sluice::f32));
    expectCurrentAfterChanges(model, kRounding);
    EXPECT_EQ(model.program().executor().executedCopies(), model.program().executor().forecast().counts());
  }
}

TEST(Derived, HasTheSameBitsOnAnyNumberOfThreadsAndUnfused) {
  auto outputs = [](const sluice::CompileOptions &options, const std::string &devices, const RunOptions &run) {
    Compiled model(network(devices, /*isSplit=*/false, sluice::f32), options, run);
    model.init(3);
    model.run("train_step", batch(), kRows);
    return model.run("predict", withoutTarget(batch()), kRows).at("y");
  };
  std::vector<double> one = outputs({}, "cpu", {.threads = 1});
  sluice::CompileOptions unfused;
  unfused.fuse = false;
  EXPECT_EQ(one, outputs({}, "cpu", {.threads = 2}));
  EXPECT_EQ(one, outputs(unfused, "cpu", {}));
  EXPECT_EQ(one, outputs({}, "sim:0", {.sim = "seed=3"}));
}

TEST(Derived, IsCurrentAfterWeightsAndCheckpointsAreLoaded) {
  using namespace sluice::runtime;
  TemporaryFolder folder;
  Compiled trained(network()), model(network());
  trained.init(7);
  trained.run("train_step", batch(), kRows);
  saveWeights(trained.program(), folder / "weights.safetensors");
  trained.run("train_step", batch(), kRows);
  saveStates(trained.program(), folder / "checkpoint", {});
  model.init(3);
  expectCurrent(model, "init");
  loadWeights(model.program(), folder / "weights.safetensors");
  expectCurrent(model, "weights");
  SafetensorsFile checkpoint(folder / "checkpoint");
  loadStates(model.program(), checkpoint, "checkpoint");
  expectCurrent(model, "checkpoint");
  EXPECT_EQ(model.state("norm.running_var"), trained.state("norm.running_var"));
  EXPECT_EQ(derivations(model), 3);
  for (const sluice::runtime::TensorRange &tensor : checkpoint.tensors())
    EXPECT_EQ(tensor.name.find("running_var."), std::string::npos) << tensor.name;
}

TEST(Derived, IsComputedByEachReplica) {
  Compiled one(network()), several = onSimulators(network(), /*replicas=*/2);
  for (Compiled *model : {&one, &several})
    model->init(3);
  for (int step = 0; step < 2; ++step) {
    expectCurrent(several, "replicas");
    for (Compiled *model : {&one, &several})
      model->run("train_step", batch(), kRows);
  }
  expectCurrent(several, "replicas");
  EXPECT_EQ(derivations(several), 3);
}

/// Evaluation runs in microbatches, which share one derivation.
TEST(Derived, IsComputedOncePerCallInMicrobatches) {
  Compiled model = onSimulators(network(), /*replicas=*/1, /*microbatches=*/3);
  model.init(3);
  for (int step = 0; step < 2; ++step) {
    expectCurrent(model, "microbatches");
    model.run("train_step", batch(), kRows);
  }
  expectCurrent(model, "microbatches");
  EXPECT_EQ(derivations(model), 3);
}

/// Two programs of one pool have separate states.
TEST(Derived, IsSeparateInEachProgram) {
  auto pool = std::make_shared<sluice::runtime::DevicePool>();
  Compiled a(network(), {}, {.pool = pool}), b(network(), {}, {.pool = pool});
  a.init(3);
  b.init(4);
  expectCurrent(a, "first");
  expectCurrent(b, "second");
  scale(b, "norm.running_var", 3);
  expectCurrent(a, "first");
  expectCurrent(b, "second");
  EXPECT_EQ(derivations(a), 1);
  EXPECT_EQ(derivations(b), 2);
}
