// Functional models: the caller keeps the states, and gets the same bits as from a program that keeps them.
#include "frontend/graph/GraphImpl.h"
#include "ir/Module.h"
#include "sluice/compile.h"
#include "sluice/sluice.h"
#include "tests/TemporaryFolder.h"
#include "tests/e2e/Harness.h"
#include "tests/e2e/Portable.h"

#include <fstream>
#include <gmock/gmock.h>

using namespace sluice::test;
using testing::IsEmpty;

namespace {

struct Net : sluice::nn::Module {
  using Module::Module;
  sluice::nn::Linear fc1{this, "fc1", 6, 5}, fc2{this, "fc2", 5, 3};
  sluice::nn::BatchNorm2d norm{this, "norm", 5};
  sluice::Tensor forward(sluice::Tensor x) override { return fc2(dropout(relu(norm(fc1(x))), 0.3)); }
};

/// A network with every kind of state, except those of rows and caches.
std::string network(const std::string &attributes, const std::string &devices = "cpu") {
  using namespace sluice;
  Graph g("net");
  g.set_devices(devices);
  g.set_capacity(8);
  Tensor x = g.input("x", f32, {Dim{"batch"}, 6}), label = g.input("label", i32, {Dim{"batch"}});
  Net net{g};
  if (devices != "cpu")
    net.to(gpu(0));
  Tensor loss = cross_entropy(net(x), label);
  g.output("loss", loss);
  g.minimize(loss, optim::Adam{.lr = 0.05, .weight_decay = 0.01, .amsgrad = true},
             {.clip_grad_norm = 1.0,
              .schedule = optim::StepLR{.step_size = 2},
              .ema = optim::EMA{.decay = 0.9},
              .loss_scale = optim::LossScale{.growth_interval = 2}});
  return replaced(g.str(), " capacity 8", " capacity 8" + attributes);
}

Values batch(int64_t rows) {
  std::vector<float> x = portableUniform("x" + std::to_string(rows), size_t(rows * 6), -1, 1);
  std::vector<int64_t> label = portableIntegers("label" + std::to_string(rows), size_t(rows), 3);
  return {{"x", {x.begin(), x.end()}}, {"label", {label.begin(), label.end()}}};
}

/// The first values of a functional program.
Values firstValues(Compiled &program, int32_t seed) { return program.run("init", {{"key", {0, double(seed)}}}, 1); }

/// Runs an entry point on a batch and states, and replaces the states that it returns.
Values step(Compiled &program, const std::string &entry, Values &states, int64_t rows) {
  Values inputs = batch(rows);
  inputs.insert(states.begin(), states.end());
  Values outputs = program.run(entry, inputs, rows);
  for (auto &[name, elements] : outputs)
    if (name.front() == '@')
      states.at(name) = elements;
  return outputs;
}

void expectStates(const Values &states, const Compiled &kept) {
  size_t count = 0;
  for (const sluice::runtime::State &state : kept.plan().states) {
    if (state.isDerived()) // functional programs have none
      continue;
    ++count;
    EXPECT_EQ(states.at("@" + state.name), kept.state(state.name)) << state.name;
  }
  EXPECT_EQ(states.size(), count);
}

} // namespace

TEST(Functional, TrainsWithTheSameBits) {
  Compiled kept(network("")), functional(network(" functional"));
  EXPECT_THAT(functional.plan().states, IsEmpty());
  kept.init(7);
  Values states = firstValues(functional, 7);
  expectStates(states, kept);
  for (int64_t rows : {8, 8, 5, 3}) {
    Values before = states;
    EXPECT_EQ(step(functional, "train_step", states, rows).at("loss"),
              kept.run("train_step", batch(rows), rows).at("loss"));
    EXPECT_NE(states, before);
  }
  expectStates(states, kept);
  EXPECT_EQ(step(functional, "predict", states, 8), kept.run("predict", batch(8), 8));
}

// The caller passes addresses of the device. Hyperparameters and numbers of steps are on the host.
TEST(Functional, ValuesAreOnTheDeviceOfTheirState) {
  Compiled program(network(" functional", "cpu,sim:0"));
  const sluice::runtime::Plan &plan = program.plan();
  auto expectOn = [&](const sluice::runtime::Value *value, size_t device) {
    ASSERT_NE(value, nullptr);
    EXPECT_EQ(plan.deviceOf(value->slot), device) << value->name;
  };
  const sluice::runtime::Entry &step = *plan.findEntry("train_step"), &init = *plan.findEntry("init");
  for (const char *name : {"@fc1.weight", "@fc1.weight.exp_avg", "@norm.running_mean"})
    for (const sluice::runtime::Value *value : {step.findInput(name), step.findOutput(name), init.findOutput(name)})
      expectOn(value, 1);
  for (const char *name : {"x", "@lr", "@random_key"})
    expectOn(step.findInput(name), 0);
}

// States with data have their elements from the file, and constants stay in the program.
TEST(Functional, ReturnsDataAsFirstValues) {
  using namespace sluice;
  TemporaryFolder folder;
  std::vector<float> table = portableUniform("table", 2000), w{1, 2, 3};
  {
    std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }";
    header += std::string(63 - (10 + header.size()) % 64, ' ') + "\n";
    std::ofstream file(folder / "w.npy", std::ios::binary);
    file << std::string("\x93NUMPY\x01\x00", 8) << char(header.size()) << char(0) << header;
    file.write(reinterpret_cast<const char *>(w.data()), std::streamsize(w.size() * sizeof(float)));
  }
  Graph g("data");
  nn::Module root{g};
  Tensor parameter = root.parameter("w", {3}, init::from_npy(folder / "w.npy"));
  Tensor sums = g.constant(table, {2000}).sum();
  g.output("y", parameter * sums);
  ir::getModel(moduleOf(g)).setFunctional(true);
  Program program = compile(g);
  program.seed(1);
  program.run("init", 1);
  EXPECT_EQ(program.output<float>("@w"), w);
  program.set_input("@w", std::vector<float>{0, 1, 2});
  program.run("predict", 1);
  std::vector<float> y = program.output<float>("y");
  double expected = 0;
  for (float value : table)
    expected += value;
  EXPECT_EQ(y[0], 0);
  EXPECT_NEAR(y[1], expected, 1e-3);
  EXPECT_EQ(y[2], 2 * y[1]);
}
