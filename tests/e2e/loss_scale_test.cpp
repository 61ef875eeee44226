// A scaled loss (optim::LossScale) compared with plain loops in double precision. The loops follow
// torch.cuda.amp.GradScaler and its kernels _amp_foreach_non_finite_check_and_unscale_ and _amp_update_scale_. The
// tests use one device, several devices and replicas, in f32 and f16. The interpreter is another reference.
#include "sluice/sluice.h"
#include "tests/Worse.h"
#include "tests/cuda_emu/Doubles.h"
#include "tests/e2e/Portable.h"
#include "tests/e2e/replicas/Replicated.h"

#include <cfloat>
#include <cstdlib>
#include <cstring>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <optional>

using namespace sluice::test;
using sluice::optim::LossScale;

namespace {

constexpr int64_t kRows = 8, kInputs = 3, kHidden = 4;
/// A gradient of this factor times a scale above 8 overflows f32; without the scale it does not.
constexpr double kTooLarge = 1e38;

enum class Lies { Unplaced, Split, Moved };

/// Two linear layers and a mean of squares, trained with all kinds of optimizer state.
struct Network {
  LossScale rule;
  double factor = 1; // factor of the loss
  sluice::optim::SGD optimizer = {.lr = 0.05, .momentum = 0.9};
  std::string devices = "cpu";
  Lies lies = Lies::Unplaced;      // or the second layer on an accelerator, or everything but inputs and outputs
  std::optional<double> norm = {}; // gradient clipping norm

  std::string text() const {
    using namespace sluice;
    Graph g("scaled");
    g.set_devices(devices);
    g.set_capacity(kRows);
    nn::Module root{g};
    nn::Linear fc1{&root, "fc1", kInputs, kHidden}, fc2{&root, "fc2", kHidden, 1};
    Tensor x = g.input("x", f32, {Dim{"batch"}, kInputs}), t = g.input("t", f32, {Dim{"batch"}, 1});
    if (lies == Lies::Split) {
      g.set_copies("insert");
      fc2.pin(gpu(0));
    }
    if (lies == Lies::Moved) {
      root.to(gpu(0));
      x = x.to(gpu(0)), t = t.to(gpu(0));
    }
    Tensor y = fc2(fc1(x));
    g.output("y", y);
    g.minimize(square(y - t).mean() * factor, optimizer,
               {.clip_grad_norm = norm,
                .schedule = optim::StepLR{.step_size = 2, .gamma = 0.8},
                .ema = optim::EMA{0.7},
                .loss_scale = rule});
    return g.str();
  }
};

/// Inputs of a step; with an overflow in the last row if requested.
Values batch(int step, bool overflows = false) {
  std::string name = "scaled/" + std::to_string(step);
  std::vector<float> x = portableUniform(name, size_t(kRows * kInputs), -1, 1),
                     t = portableUniform(name + "/t", size_t(kRows), -1, 1);
  if (overflows)
    t.back() = float(kTooLarge);
  return {{"x", {x.begin(), x.end()}}, {"t", {t.begin(), t.end()}}};
}

using States = std::map<std::string, std::vector<double>>;

/// The same computation in double, starting with a model's states.
class Rule {
public:
  Rule(const Network &network, States states) : network(network), states(std::move(states)) {}

  void step(const Values &inputs) {
    States gradients = gradientsFor(inputs);
    double &scale = states["loss_scale"][0], &good = states["loss_scale.good_steps"][0];
    bool isFinite = true;
    for (const auto &[name, gradient] : gradients)
      for (double element : gradient)
        isFinite &= std::fabs(element * scale) <= FLT_MAX;
    if (!isFinite) {
      scale *= network.rule.backoff_factor;
      good = 0;
      return;
    }
    update(clipped(gradients));
    if (++good < double(network.rule.growth_interval))
      return;
    good = 0;
    if (scale * network.rule.growth_factor <= FLT_MAX)
      scale *= network.rule.growth_factor;
  }

  const Network &network;
  States states;

private:
  States gradientsFor(const Values &inputs) {
    const std::vector<double> &x = inputs.at("x"), &w1 = states["fc1.weight"], &b1 = states["fc1.bias"],
                              &w2 = states["fc2.weight"];
    size_t rows = x.size() / kInputs;
    States gradients{{"fc1.weight", std::vector<double>(kHidden * kInputs)},
                     {"fc1.bias", std::vector<double>(kHidden)},
                     {"fc2.weight", std::vector<double>(kHidden)},
                     {"fc2.bias", {0}}};
    for (size_t row = 0; row < rows; ++row) {
      double hidden[kHidden], y = states["fc2.bias"][0];
      for (size_t j = 0; j < kHidden; ++j) {
        hidden[j] = b1[j];
        for (size_t k = 0; k < kInputs; ++k)
          hidden[j] += w1[j * kInputs + k] * x[row * kInputs + k];
        y += w2[j] * hidden[j];
      }
      double d = 2 * network.factor / double(rows) * (y - inputs.at("t")[row]);
      gradients["fc2.bias"][0] += d;
      for (size_t j = 0; j < kHidden; ++j) {
        gradients["fc2.weight"][j] += d * hidden[j];
        gradients["fc1.bias"][j] += d * w2[j];
        for (size_t k = 0; k < kInputs; ++k)
          gradients["fc1.weight"][j * kInputs + k] += d * w2[j] * x[row * kInputs + k];
      }
    }
    return gradients;
  }

  States clipped(States gradients) const {
    double sum = 0;
    for (const auto &[name, gradient] : gradients)
      for (double element : gradient)
        sum += element * element;
    double factor = network.norm ? std::min(1.0, *network.norm / (std::sqrt(sum) + 1e-6)) : 1.0;
    for (auto &[name, gradient] : gradients)
      for (double &element : gradient)
        element *= factor;
    return gradients;
  }

  void update(const States &gradients) {
    double taken = states["step"][0]++, rate = network.optimizer.lr * std::pow(0.8, std::floor(taken / 2));
    for (const auto &[name, gradient] : gradients)
      for (size_t i = 0; i < gradient.size(); ++i) {
        double &value = states[name][i], &average = states[name + ".ema"][i], change = gradient[i];
        if (network.optimizer.momentum != 0) {
          double &buffer = states[name + ".momentum_buffer"][i];
          change = buffer = network.optimizer.momentum * buffer + change;
        }
        value -= rate * change;
        average = taken == 0 ? value : 0.7 * average + 0.3 * value;
      }
  }
};

States statesOf(Compiled &model) {
  States states;
  for (const sluice::runtime::State &state : model.plan().states)
    if (state.isKept())
      states[state.name] = model.state(state.name);
  return states;
}

/// Over all replicas.
std::vector<std::byte> bytesOf(Compiled &model, const std::string &name, int64_t replica = 0) {
  const sluice::runtime::State &state = model.program().state(name);
  std::vector<std::byte> bytes(size_t(state.logicalBytes()));
  model.program().getState(state, bytes, replica);
  return bytes;
}

/// Expects the exact scale, and all other states within rounding.
void expectStates(Compiled &model, Rule &rule, double allowed, const std::string &where) {
  for (const auto &[name, value] : statesOf(model)) {
    double largest = 1e-30;
    for (double element : rule.states.at(name))
      largest = std::max(largest, std::fabs(element));
    bool isExact = name == "step" || name.starts_with("loss_scale");
    double error = largestDifference(value, rule.states.at(name)) / largest;
    EXPECT_TRUE(error <= (isExact ? 0 : allowed)) << name << " " << error << " " << where;
  }
}

/// For a step with overflowing gradients.
void expectNothingLearnt(const Network &network, Compiled &model, const Values &inputs, const std::string &where) {
  Rule rule(network, statesOf(model));
  model.run("train_step", inputs, kRows);
  rule.step(inputs);
  EXPECT_EQ(rule.states["step"][0], 0);
  expectStates(model, rule, 0, where);
}

/// Steps with and without overflow, so that the scale rises and falls; also with fewer rows.
void expectAsTheRule(const Network &network, Compiled &model, int64_t replicas = 1) {
  model.init(3);
  Rule rule(network, statesOf(model));
  for (int step = 0; step < 14; ++step) {
    bool overflows = step == 4 || step == 5 || step == 10;
    Values inputs = batch(step, overflows);
    model.run("train_step", inputs, kRows);
    rule.step(inputs);
    expectStates(model, rule, 2e-5, "after step " + std::to_string(step));
    for (int64_t replica = 1; replica < replicas; ++replica)
      for (const auto &[name, value] : rule.states)
        EXPECT_EQ(bytesOf(model, name, replica), bytesOf(model, name)) << name << " of " << replica;
  }
  EXPECT_EQ(rule.states["loss_scale"][0], 1024 * 2 / 4 * 2 / 2 * 2) << "the scale does not go both ways";
  EXPECT_EQ(rule.states["step"][0], 11);
}

const LossScale kQuick{.init_scale = 1024, .growth_interval = 3};

sluice::CompileOptions inF16() {
  sluice::CompileOptions options;
  options.precision = sluice::f16;
  return options;
}

} // namespace

TEST(LossScale, IsWhatTheRuleSays) {
  for (const Network &network :
       {Network{.rule = kQuick}, Network{.rule = kQuick, .norm = 0.2}, Network{.rule = kQuick, .devices = "sim:0"},
        Network{.rule = kQuick, .devices = "cpu,sim:0", .lies = Lies::Moved},
        Network{.rule = kQuick, .devices = "cpu,sim:0", .lies = Lies::Split, .norm = 0.2},
        Network{.rule = kQuick, .devices = "sim:0,sim:1", .lies = Lies::Split}}) {
    SCOPED_TRACE(network.devices);
    Compiled model(network.text());
    expectAsTheRule(network, model);
  }
}

// An overflow in the row sum of the last gradient, or in one element of the first; all other gradients are finite.
TEST(LossScale, OneGradientIsEnough) {
  Network network{.rule = kQuick};
  double each = double(FLT_MAX) / (kQuick.init_scale * 2 / kRows); // from here on the gradient of one row overflows
  for (bool isFirst : {false, true}) {
    Compiled model(network.text());
    model.init(3);
    for (const char *name : {"fc1.weight", "fc1.bias"})
      model.setState(name, std::vector<double>(model.state(name).size()));
    model.setState("fc2.weight", std::vector<double>(kHidden, isFirst ? 1 : 0));
    Values inputs = batch(0);
    inputs["t"].assign(kRows, 0);
    inputs["t"][3] = each * 0.6;
    inputs["t"][5] = isFirst ? 0 : each * 0.6;
    if (isFirst)
      inputs["x"][3 * kInputs] = 2;
    expectNothingLearnt(network, model, inputs, isFirst ? "of the first" : "of the last");
  }
}

// Only the last replica has the overflowing row.
TEST(LossScale, IsTheSameOnAllReplicas) {
  Network network{.rule = kQuick};
  struct Sharing {
    int64_t replicas, microbatches, shards;
    bool zero;
  };
  for (const Sharing &sharing : {Sharing{2, 1, 0, false},
                                 {3, 1, 0, false},
                                 {2, 1, 0, true},
                                 {3, 1, 0, true},
                                 {1, 4, 0, false},
                                 {2, 2, 0, false},
                                 {3, 2, 0, true},
                                 {2, 1, 4, false}}) {
    for (bool onHost : {false, true}) {
      std::string devices = onHost || sharing.replicas == 1 ? "" : fmt::format("sim:0-{}", sharing.replicas - 1);
      SCOPED_TRACE(fmt::format("{} replicas on '{}', {} microbatches, {} shards, zero {}", sharing.replicas, devices,
                               sharing.microbatches, sharing.shards, sharing.zero));
      std::string text = onReplicas(network.text(), sharing.replicas, devices, /*syncBatchNorm=*/false,
                                    sharing.microbatches, sharing.shards);
      Compiled model(sharing.zero ? withShards(text) : text, {}, {.sim = "devices=4,seed=7"});
      expectAsTheRule(network, model, sharing.replicas);
    }
  }
}

// Each replica's own gradient is finite.
TEST(LossScale, IsOfGradientsOfAllReplicas) {
  Network network{.rule = kQuick};
  Values inputs = batch(0);
  inputs["t"][0] = inputs["t"][kRows - 1] = 0.6 * double(FLT_MAX) / (kQuick.init_scale * 2 / kRows);
  for (bool zero : {false, true}) {
    std::string text = onReplicas(network.text(), 2, "sim:0-1");
    Compiled model(zero ? withShards(text) : text, {}, {.sim = "devices=2,seed=7"});
    model.init(3);
    expectNothingLearnt(network, model, inputs, zero ? "with shards" : "without shards");
  }
}

TEST(LossScale, GrowsNoFurtherThanF32) {
  Network network{.rule = {.init_scale = 0x1p125, .growth_interval = 1}};
  Compiled model(network.text());
  model.init(3);
  for (const char *name : {"fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"})
    model.setState(name, std::vector<double>(model.state(name).size()));
  Values inputs = batch(0);
  inputs["t"].assign(kRows, 0);
  for (double expected : {0x1p126, 0x1p127, 0x1p127, 0x1p127}) {
    model.run("train_step", inputs, kRows);
    EXPECT_EQ(model.state("loss_scale")[0], expected);
    EXPECT_EQ(model.state("loss_scale.good_steps")[0], 0);
  }
}

/// Relative to the norm of the change over twenty steps; also returns the size of the gradients.
double errorOfTraining(const Network &network) {
  Compiled model(network.text(), inF16());
  model.init(3);
  Rule rule(network, statesOf(model));
  States first = rule.states;
  for (int step = 0; step < 20; ++step) {
    model.run("train_step", batch(step), kRows);
    rule.step(batch(step));
  }
  double wrong = 0, changed = 0;
  for (const char *name : {"fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"})
    for (size_t i = 0; i < first.at(name).size(); ++i) {
      double exact = rule.states.at(name)[i];
      wrong += std::pow(model.state(name).at(i) - exact, 2);
      changed += std::pow(exact - first.at(name)[i], 2);
    }
  EXPECT_GT(changed, 0.01);
  EXPECT_LT(std::sqrt(changed) / network.optimizer.lr / 20, 3e-9) << "gradients are not small";
  return std::sqrt(wrong / changed);
}

// The gradients of the loss are about 1e-9, which is 0 in f16.
TEST(LossScale, KeepsGradientsThatVanishInF16) {
  Network network{.rule = {.init_scale = 0x1p24}, .factor = 1e-9, .optimizer = {.lr = 2e8}};
  double error = errorOfTraining(network);
  std::printf("off by %.2g of what is changed\n", error);
  EXPECT_TRUE(error <= 4 * 0x1p-10) << error;
  network.rule = {.init_scale = 1, .growth_factor = 1};
  EXPECT_EQ(errorOfTraining(network), 1) << "without a scale they do not vanish";
}

namespace {

/// With all kinds of states that a step updates.
std::string images() {
  using namespace sluice;
  Graph g("images");
  g.set_capacity(kRows);
  nn::Module root{g};
  nn::Conv2d conv{&root, "conv", 2, 3, 3};
  nn::BatchNorm2d norm{&root, "norm", 3};
  nn::Linear fc{&root, "fc", 12, 1};
  Tensor x = g.input("x", f32, {Dim{"batch"}, 2, 4, 4}), t = g.input("t", f32, {Dim{"batch"}, 1});
  Tensor y = fc(dropout(relu(norm(conv(x))), 0.2).flatten(1));
  g.output("y", y);
  g.minimize(square(y - t).mean() * 0.01, optim::AdamW{.lr = 0.01, .amsgrad = true},
             {.clip_grad_norm = 1.0, .schedule = optim::StepLR{.step_size = 3}, .ema = optim::EMA{0.9}});
  return g.str();
}

Values imageBatch(int step, bool overflows) {
  Values inputs = batch(step, overflows);
  std::vector<float> x = portableUniform("images/" + std::to_string(step), size_t(kRows) * 32, -1, 1);
  inputs["x"] = {x.begin(), x.end()};
  return inputs;
}

bool staysWithoutAStep(const sluice::runtime::State &state) {
  using sluice::runtime::StateKind;
  return state.kind == StateKind::parameter || state.kind == StateKind::slot ||
         state.kind == StateKind::hyperparameter || state.name == "step";
}

} // namespace

// In f16, where the default scale is 65536.
TEST(LossScale, AStepThatOverflowsChangesNoBit) {
  Compiled model(images(), inF16());
  model.init(5);
  EXPECT_EQ(model.state("loss_scale")[0], 65536);
  double scale = 65536;
  for (int step = 0; step < 6; ++step) {
    bool overflows = step % 3 == 1;
    std::map<std::string, std::vector<std::byte>> before;
    for (const sluice::runtime::State &state : model.plan().states)
      before[state.name] = bytesOf(model, state.name);
    model.run("train_step", imageBatch(step, overflows), kRows);
    for (const sluice::runtime::State &state : model.plan().states) {
      bool stays = state.kind == sluice::runtime::StateKind::hyperparameter || (overflows && staysWithoutAStep(state));
      // Derived states are computed before the calls that read them.
      if (!state.isDerived() && !state.name.starts_with("loss_scale"))
        EXPECT_EQ(bytesOf(model, state.name) == before[state.name], stays) << state.name << " in step " << step;
    }
    scale *= overflows ? 0.5 : 1;
    EXPECT_EQ(model.state("loss_scale")[0], scale);
    EXPECT_EQ(model.state("loss_scale.good_steps")[0], overflows ? 0 : step % 3 ? 1 : step == 0 ? 1 : 2);
  }
}

namespace {

/// Several f16 steps, one of which overflows. Each starts with the reference's states, so that errors do not
/// accumulate.
void expectAsTheInterpreter(const std::string &devices) {
  Network network{.rule = kQuick, .devices = devices};
  Compiled model(network.text(), inF16());
  Interpreted reference(network.text(), "train", inF16());
  model.init(3);
  for (auto &[name, value] : reference.states)
    value.data = model.state(name);
  for (int step = 0; step < 5; ++step) {
    Values inputs = batch(step, step == 1);
    model.run("train_step", inputs, kRows);
    reference.run("train_step", inputs, kRows);
    for (auto &[name, value] : reference.states) {
      double largest = 1e-30, error = largestDifference(model.state(name), value.data);
      for (double element : value.data)
        largest = std::max(largest, std::fabs(element));
      bool isExact = name == "step" || name.starts_with("loss_scale");
      EXPECT_TRUE(error <= (isExact ? 0 : 4 * 0x1p-11 * largest)) << name << " " << error << " in step " << step;
      model.setState(name, value.data);
    }
  }
  EXPECT_EQ(model.state("loss_scale")[0], 1024);
}

} // namespace

TEST(LossScale, IsTheInterpretersOnTheHost) { expectAsTheInterpreter("cpu"); }

TEST(LossScale, IsTheInterpretersOnAnEmulatedDevice) {
  setenv("CUDA_EMU_EFFORT", "least", /*overwrite=*/1); // each kernel runs some times
  useCudaDoubles(/*devices=*/1, /*seed=*/5);
  expectAsTheInterpreter("cuda:0");
}
