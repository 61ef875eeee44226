// Compiles and runs frozen parameters, copies of trained parameters, and initial values from files.
#include "tests/TemporaryFolder.h"
#include <sluice/compile.h>
#include <sluice/sluice.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

using namespace sluice;
using sluice::test::TemporaryFolder;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

using Floats = std::vector<float>;

std::string errorOf(const std::function<void()> &body) {
  try {
    body();
  } catch (const Error &error) {
    return error.what();
  }
  return "no error";
}

/// y = (x frozen) w, with one number per row; `read` defines how the loss reads the frozen parameter.
Graph productGraph(const std::function<Tensor(Tensor x, Tensor frozen)> &read, const optim::Optimizer &optimizer,
                   const optim::Options &options = {}) {
  Graph g{"product"};
  g.set_capacity(4);
  Tensor x = g.input("x", f32, {Dim{"batch"}, 1});
  nn::Module root{g};
  Tensor frozen = root.parameter("frozen", {1}, init::ones()), w = root.parameter("w", {1}, init::ones());
  Tensor y = read(x, frozen) * w;
  g.output("y", y);
  g.minimize(y.mean(), optimizer, options);
  return g;
}

Program stepped(const Graph &graph, int steps, const CompileOptions &options = {}) {
  Program program = compile(graph, options);
  program.seed(1);
  program.run("init", 1);
  program.set_input("x", Floats{1, 2, 3, 4});
  for (int step = 0; step < steps; ++step)
    program.run("train_step", 4);
  return program;
}

Tensor detached(Tensor x, Tensor frozen) { return (x * frozen).detach(); }
Tensor compared(Tensor x, Tensor frozen) { return where(x > frozen * 2.0, x, 1.0); }
Tensor unrequired(Tensor x, Tensor frozen) { return x * frozen.requires_grad(false); }

} // namespace

TEST(Frozen, ParametersAreNotDecayedAndHaveNoSlots) {
  for (auto *read : {detached, compared, unrequired})
    for (const optim::Optimizer &optimizer : std::vector<optim::Optimizer>{
             optim::AdamW{.lr = 0.1, .weight_decay = 0.5}, optim::SGD{.lr = 0.1, .momentum = 0.9, .weight_decay = 0.5},
             optim::RMSprop{.lr = 0.1, .weight_decay = 0.5}}) {
      Program program = stepped(productGraph(read, optimizer, {.ema = optim::EMA{}}), 3);
      EXPECT_THAT(program.state<float>("frozen"), ElementsAre(1.0F));
      EXPECT_NE(program.state<float>("w")[0], 1.0F);
      for (const char *slot : {"exp_avg", "exp_avg_sq", "momentum_buffer", "square_avg", "ema"})
        EXPECT_THAT(errorOf([&] { program.state<float>("frozen." + std::string(slot)); }), HasSubstr("no state"));
      EXPECT_EQ(errorOf([&] { program.state<float>("w.ema"); }), "no error");
    }
}

// Matches PyTorch 1.13: torch.optim.AdamW([w], lr=0.1, weight_decay=0.5), three steps of the mean of 2.5 w.
TEST(Frozen, ParametersLeaveTheOthersUpdatesAsTheyAre) {
  double w = 1, first = 0, second = 0;
  for (int step = 1; step <= 3; ++step) {
    double gradient = 2.5;
    first = 0.9 * first + 0.1 * gradient;
    second = 0.999 * second + 0.001 * gradient * gradient;
    double mean = first / (1 - std::pow(0.9, step)), square = second / (1 - std::pow(0.999, step));
    w = w * (1 - 0.1 * 0.5) - 0.1 * mean / (std::sqrt(square) + 1e-8);
  }
  Program program = stepped(productGraph(unrequired, optim::AdamW{.lr = 0.1, .weight_decay = 0.5}), 3);
  double error = std::abs(program.state<float>("w")[0] - w);
  EXPECT_TRUE(error <= 1e-6) << error;
}

// An lr_factor of 0 does not freeze a group if the schedule adds to the rate: PyTorch does not scale eta_min either.
TEST(Frozen, AGroupWithoutALearningRateIsNot) {
  optim::Options options{.groups = {{.params = {"frozen"}, .lr_factor = 0}},
                         .schedule = optim::CosineAnnealingLR{.T_max = 5, .eta_min = 0.05}};
  auto plain = [](Tensor x, Tensor frozen) { return x * frozen; };
  EXPECT_NE(stepped(productGraph(plain, optim::SGD{.lr = 0.1}, options), 3).state<float>("frozen")[0], 1.0F);
  EXPECT_EQ(stepped(productGraph(unrequired, optim::SGD{.lr = 0.1}, options), 3).state<float>("frozen")[0], 1.0F);
}

//===- copies of trained parameters -------------------------------------------------------------------------------===//

namespace {

struct TwoLayers : nn::Module {
  using Module::Module;
  nn::Linear net{this, "net", 1, 3}, before{this, "before", 1, 3}, after{this, "after", 1, 3};
};

/// A network and two copies, which hold its values before and after each update. The loss reads both copies, frozen.
Graph targetGraph(const optim::Options &options = {}) {
  Graph g{"target"};
  g.set_capacity(4);
  Tensor x = g.input("x", f32, {Dim{"batch"}, 1});
  TwoLayers layers{g};
  layers.before.requires_grad(false);
  layers.after.requires_grad(false);
  Tensor y = layers.net(x);
  g.output("y", y);
  g.minimize(mse_loss(y, 2.0 * layers.before(x) + layers.after(x).detach()), optim::SGD{.lr = 0.01, .momentum = 0.9},
             options);
  layers.before.weight.copy_(layers.net.weight);
  layers.before.bias.copy_(layers.net.bias);
  layers.after.weight.copy_(layers.net.weight.updated());
  layers.after.bias.copy_(0.25 * layers.after.bias + 0.75 * layers.net.bias.updated());
  g.output("next", layers.net.weight.updated() * 1.0);
  return g;
}

void expectFollowed(const CompileOptions &options, const optim::Options &training = {}) {
  Program program = compile(targetGraph(training), options);
  program.seed(1);
  program.run("init", 1);
  program.set_input("x", Floats{1, 2, 3, 4});
  for (int step = 0; step < 3; ++step) {
    Floats weight = program.state<float>("net.weight"), bias = program.state<float>("net.bias"),
           old = program.state<float>("after.bias");
    program.run("train_step", 4);
    Floats nextWeight = program.state<float>("net.weight"), nextBias = program.state<float>("net.bias");
    EXPECT_NE(nextWeight, weight);
    EXPECT_EQ(program.state<float>("before.weight"), weight);
    EXPECT_EQ(program.state<float>("before.bias"), bias);
    EXPECT_EQ(program.state<float>("after.weight"), nextWeight);
    Floats mixed;
    for (size_t i = 0; i < bias.size(); ++i)
      mixed.push_back(0.25F * old[i] + 0.75F * nextBias[i]);
    EXPECT_THAT(program.state<float>("after.bias"), testing::Pointwise(testing::FloatEq(), mixed));
  }
  Floats weight = program.state<float>("net.weight");
  program.run("predict", 4); // predict updates nothing
  EXPECT_EQ(program.output<float>("next"), weight);
  program.run("eval_step", 4);
  EXPECT_EQ(program.state<float>("after.weight"), weight);
  EXPECT_NE(program.state<float>("before.weight"), weight);
}

} // namespace

TEST(Updated, IsTheValueAfterTheUpdate) { expectFollowed({}); }

TEST(Updated, IsTheValueAfterAClippedUpdate) {
  expectFollowed({}, {.clip_grad_norm = 0.5, .schedule = optim::LinearLR{}, .ema = optim::EMA{}});
}

TEST(Updated, IsTheSameUnfusedAndOnAnAccelerator) {
  expectFollowed({.fuse = false});
  expectFollowed({.devices = "sim:0"});
}

TEST(Updated, IsTheValueAfterAScaledUpdate) {
  expectFollowed({.precision = f16}, {.loss_scale = optim::LossScale{.init_scale = 4}});
}

TEST(Updated, IsTheSameOfReplicasAndMicrobatches) {
  expectFollowed({.devices = "sim:0-1", .replicas = 2});
  expectFollowed({.accumulate = 2});
  expectFollowed({.devices = "sim:0-1", .replicas = 2, .accumulate = 2});
}

TEST(Updated, IsWholeWhereReplicasKeepShards) { expectFollowed({.devices = "sim:0-1", .replicas = 2, .zero = 1}); }

//===- initial values ---------------------------------------------------------------------------------------------===//

namespace {

struct Normed : nn::Module {
  using Module::Module;
  nn::Linear fc{this, "fc", 2, 2};
  nn::BatchNorm2d bn{this, "bn", 2};
  Tensor forward(Tensor x) override { return bn(fc(x)); }
};

Graph normedGraph(const std::function<void(Normed &)> &begin = [](Normed &) {}) {
  Graph g{"normed"};
  g.set_capacity(2);
  Tensor x = g.input("x", f32, {Dim{"batch"}, 2});
  Normed net{g};
  begin(net);
  g.output("y", net(x));
  return g;
}

Floats predicted(Program &program) {
  program.set_input("x", Floats{10, 20, -3, 4});
  program.run("predict", 2);
  return program.output<float>("y");
}

} // namespace

TEST(FromFile, HasAllThatWeightsHave) {
  TemporaryFolder folder;
  std::string file = folder / "weights.safetensors";
  Program trained = compile(normedGraph());
  trained.seed(7);
  trained.run("init", 1);
  trained.set_state("bn.running_mean", Floats{10, -3});
  trained.set_state("bn.running_var", Floats{4, 9});
  trained.save_weights(file);

  Program loaded = compile(normedGraph());
  loaded.load_weights(file);
  Program begun = compile(normedGraph([&](Normed &net) { net.initialize("*", init::from_file(file)); }));
  begun.seed(1);
  begun.run("init", 1);

  EXPECT_THAT(begun.state<float>("bn.running_mean"), ElementsAre(10, -3));
  EXPECT_THAT(begun.state<float>("bn.running_var"), ElementsAre(4, 9));
  EXPECT_EQ(predicted(begun), predicted(loaded));
}

TEST(FromFile, APatternMayNameAStatistic) {
  TemporaryFolder folder;
  std::string file = folder / "weights.safetensors";
  Program trained = compile(normedGraph());
  trained.seed(7);
  trained.run("init", 1);
  trained.set_state("bn.running_var", Floats{4, 9});
  trained.save_weights(file);
  Program begun = compile(normedGraph([&](Normed &net) {
    net.initialize("*.running_var", init::from_file(file));
    net.bn.initialize("running_mean", init::constant(5));
  }));
  begun.seed(1);
  begun.run("init", 1);
  EXPECT_THAT(begun.state<float>("bn.running_var"), ElementsAre(4, 9));
  EXPECT_THAT(begun.state<float>("bn.running_mean"), Each(5));
}

//===- names ------------------------------------------------------------------------------------------------------===//

TEST(Inputs, MayBeCalledKey) {
  Graph g{"attention"};
  Tensor query = g.input("query", f32, {Dim{"batch"}, 2}), key = g.input("key", f32, {Dim{"batch"}, 2});
  nn::Module root{g};
  nn::Linear fc{&root, "fc", 2, 1};
  g.output("y", fc(query * key));
  Program program = compile(g);
  program.seed(1);
  program.run("init", 1);
  program.set_state("fc.weight", Floats{1, 10});
  program.set_state("fc.bias", Floats{0.5F});
  program.set_input("query", Floats{1, 2});
  EXPECT_THAT(errorOf([&] { program.run("predict", 1); }), HasSubstr("needs the input 'key'"));
  program.set_input("key", Floats{3, 4});
  program.run("predict", 1);
  EXPECT_THAT(program.output<float>("y"), ElementsAre(83.5F));
  program.run("init", 1); // still initializes from the seed
  EXPECT_NE(program.state<float>("fc.weight"), (Floats{1, 10}));
}
