// Gradients as values of a graph, and graphs that train without an optimizer: the generated text, and rejected uses.
#include "Observe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace sluice;
using sluice::test::messageOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

namespace {

struct Gradient : testing::Test {
  Gradient() { g.set_devices("cpu,sim:0,sim:1"); }

  Graph g{"test"};
  nn::Module root{g};
  Tensor x = g.input("x", f32, {4, 3});
  Tensor w = root.parameter("w", {3}, init::normal(0.0, 1.0));
  Tensor y = x * w;
  Tensor loss = sum(y * y);

  void refuses(const std::function<void()> &use, const std::string &message) {
    EXPECT_THAT(messageOf(use), HasSubstr(message));
  }
};

using Update = Gradient;
using checklist_40_gradients_live_on_their_values_device = Gradient;
using checklist_47_get_params = Gradient;

} // namespace

TEST_F(Gradient, IsAsItsValueIs) {
  std::vector<Tensor> gradients = grad(loss, {w, y, x, loss});
  ASSERT_EQ(gradients.size(), 4u);
  EXPECT_EQ(gradients[0].shape().str(), "[3]");
  EXPECT_EQ(gradients[1].shape().str(), "[4, 3]");
  EXPECT_EQ(gradients[2].dtype(), f32);
  EXPECT_EQ(gradients[3].dim(), 0);
  g.output("dw", gradients[0]);
  EXPECT_THAT(g.str(), HasSubstr(" by %w, "));
}

TEST_F(checklist_40_gradients_live_on_their_values_device, OfACopyToo) {
  Tensor copy = w.to(gpu(1)), moved = x.to(gpu(1));
  std::vector<Tensor> gradients = grad(sum(moved * copy), {copy, w});
  EXPECT_EQ(gradients[0].device(), gpu(1));
  EXPECT_EQ(gradients[1].device(), std::nullopt) << "w is placed later";
}

TEST_F(Gradient, NeedsAScalarOfFloats) {
  refuses([&] { grad(y, {w}); }, "grad: needs a scalar; reduce it with mean or sum ([4, 3])");
  refuses([&] { grad(argmax(w, 0), {w}); }, "grad: works on floats, not i32");
  refuses([&] { grad(Tensor(), {w}); }, "grad: an operand is an empty tensor");
}

TEST_F(Gradient, NeedsValuesOfFloatsOfItsGraph) {
  Tensor label = g.input("label", i32, {4});
  Graph other{"other"};
  Tensor there = other.input("there", f32, {3});
  refuses([&] { grad(loss, {}); }, "grad: needs at least one value to differentiate with respect to");
  refuses([&] { grad(loss, {w, label}); }, "grad: value 2, 'label' [4], is of i32: gradients are by floats");
  refuses([&] { grad(loss, {there}); }, "grad: the tensor belongs to another graph");
  refuses([&] { grad(loss, {w, Tensor()}); }, "grad: an operand is an empty tensor");
}

TEST_F(Gradient, IsByWhatTheLossDependsOn) {
  Tensor v = root.parameter("v", {3}, init::zeros());
  refuses([&] { grad(loss, {w, v}); }, "grad: value 2, 'v' [3], has no gradient: the loss does not depend on it");
  refuses([&] { grad(sum(x * w.detach()), {w}); },
          "grad: value 1, 'w' [3], has no gradient: the loss does not depend on it");
  refuses([&] { grad(sum(x * (w > 0.0).to(f32)), {w}); },
          "grad: value 1, 'w' [3], has no gradient: the loss does not depend on it");
  refuses([&] { grad(loss, {loss + 1.0}); }, "grad: value 1, [], depends on the loss, not the loss on it");
}

TEST_F(Gradient, TellsTheLine) {
  try {
    grad(loss, {});
  } catch (const Error &error) {
    EXPECT_EQ(error.location().line, unsigned(__LINE__ - 2));
    EXPECT_EQ(error.location().file, "GradientTest.cpp");
  }
}

TEST_F(Gradient, HasNoPlaceInAStepOfAScan) {
  auto step = [&](const std::vector<Tensor> &carried, const std::vector<Tensor> &slices) -> ScanStep {
    Tensor next = carried[0] + slices[0];
    return {{grad(sum(next * next), {next})[0]}, {}};
  };
  refuses([&] { scan({w}, {x}, 0, step); }, "scan: 'gradient' has no place in a step");
}

// --- training steps

TEST_F(Update, OfAParameterMakesATrainingStep) {
  Tensor lr = g.hyper("lr", 0.25);
  EXPECT_EQ(&w.copy_(w - lr * grad(loss, {w})[0] / 4), &w);
  g.metric("loss", loss / 4);
  std::string text = g.str();
  EXPECT_THAT(text, HasSubstr("sluice.state hyperparameter @lr : tensor<f32> = <\"constant\", 2.500000e-01"));
  EXPECT_THAT(text, HasSubstr("sluice.set @w, "));
  EXPECT_THAT(text, HasSubstr("sluice.metric \"loss\", "));
}

TEST_F(Update, OfABufferAloneIsNoResult) {
  Tensor kept = root.buffer("kept", {3}, init::zeros());
  kept.copy_(w);
  EXPECT_EQ(messageOf([&] { g.str(); }), "the graph 'test' has neither an output nor a loss");
}

TEST_F(Update, IsOnceAStepAndOfStates) {
  Tensor once = w, value = w * 2.0;
  once.copy_(value);
  refuses([&] { w.copy_(value); }, "copy_: 'w' is updated twice a step");
  refuses([&] { y.copy_(y); }, "copy_: can only write parameters and buffers of a module");
  refuses([&] { value.copy_to(x); }, "copy_to: sizes differ");
}

TEST_F(Update, IsNotOfWhatMinimizeTrains) {
  Tensor v = root.parameter("v", {3}, init::zeros());
  g.minimize(loss, optim::SGD{});
  refuses([&] { w.copy_(w * 2.0); }, "copy_: 'w' is trained by minimize already");
  EXPECT_NO_THROW(v.copy_(v + 1.0));
}

TEST_F(Update, GoesBeforeMinimizeNeither) {
  w.copy_(w * 2.0);
  Tensor again = root.parameter("v", {3}, init::zeros());
  refuses([&] { g.minimize(loss, optim::SGD{}); }, "minimize: 'w' is written by copy_ or copy_to already");
  EXPECT_NO_THROW(g.minimize(sum(again), optim::SGD{}));
}

TEST_F(Update, TheLossIsOne) {
  g.metric("loss", loss);
  refuses([&] { g.minimize(loss, optim::SGD{}); }, "minimize: the graph has a loss already");
  refuses([&] { g.metric("loss", loss); }, "metric: the graph has a loss already");
}

TEST_F(Update, HyperparametersAreFloatsOfTheirNames) {
  refuses([&] { g.hyper("step", 1); }, "'step' is a state of the optimizer");
  refuses([&] { g.hyper("n", 1, i32); }, "'n': hyperparameters are floats, not i32");
  refuses([&] { g.hyper("a b", 1); }, "'a b' cannot name a hyperparameter");
  refuses([&] { g.hyper("w", 1); }, "there is already a parameter 'w'");
  g.hyper("lr", 1);
  refuses([&] { g.minimize(loss, optim::SGD{}); }, "there is already a hyperparameter 'lr'");
}

// --- copies of parameters

TEST_F(checklist_47_get_params, AreParametersOfTheirOwn) {
  std::vector<Tensor> first = get_params({w}, gpu(0)), second = get_params(first, gpu(1)),
                      host = get_params({w}, cpu());
  EXPECT_EQ(first[0].device(), gpu(0));
  EXPECT_EQ(second[0].device(), gpu(1));
  std::vector<std::string> names;
  for (const Graph::State &state : g.states())
    names.push_back(state.kind + " " + state.name);
  EXPECT_THAT(names, ElementsAre("parameter w", "parameter w.gpu0", "parameter w.gpu0.gpu1", "parameter w.cpu"));
  g.output("y", x.to(gpu(0)) * first[0]);
  root.initialize("w", init::normal(0.0, 0.5));
  std::string text = g.str(); // verifies that all have the same initial value
  EXPECT_THAT(text,
              HasSubstr("@w.gpu0.gpu1 : tensor<3xf32> = <\"normal\", 0.000000e+00 : f64, 5.000000e-01 : f64> like @w"));
  EXPECT_THAT(text, Not(HasSubstr("like @w.gpu0")));
}

TEST_F(checklist_47_get_params, AreOfParametersAndOnceOnADevice) {
  refuses([&] { get_params({y}, gpu(0)); }, "get_params: copies parameters of a module");
  refuses([&] { get_params({w}, gpu(7)); }, "gpu(7)");
  get_params({w}, gpu(0));
  refuses([&] { get_params({w}, gpu(0)); }, "there is already a parameter 'w.gpu0'");
}

// A value without a device is copied to the device of its consumer before it is expanded.
TEST_F(Update, AScalarIsRepeatedWhereItIsNeeded) {
  Tensor lr = g.hyper("lr", 0.25);
  EXPECT_EQ((lr * w.to(gpu(1))).device(), gpu(1));
  g.output("y", lr * w.to(gpu(1)));
  EXPECT_THAT(g.str(), HasSubstr("shape = array<i64: 3>} : (tensor<f32>) -> tensor<3xf32, #acc1"));
}
