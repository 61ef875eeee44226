// Values that rows carry from one training step to the next. They are independent of the number of replicas and
// microbatches and of the rows of calls. Training may continue with another number of replicas.
#include "sluice/sluice.h"
#include "tests/e2e/Portable.h"
#include "tests/e2e/replicas/Replicated.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace sluice::test {

static constexpr int64_t kBatch = 6, kSteps = 5, kFeatures = 3;
/// The second call with all rows continues from the first; the third omits rows that the fifth includes again.
static constexpr int64_t kRows[] = {6, 6, 2, 1, 6, 5};

static std::string network() {
  Graph g("stateful");
  g.set_capacity(kBatch);
  g.set_dtype(f64);
  Tensor x = g.input("x", f64, {Dim{"batch"}, kSteps, kFeatures}), label = g.input("class", i32, {Dim{"batch"}});
  nn::Module root{g};
  nn::LSTM lstm{&root, "lstm", kFeatures, 4, {.num_layers = 2, .batch_first = true, .stateful = true}};
  nn::Linear fc{&root, "fc", 4, 3};
  Tensor logits = fc(lstm(x).mean(1));
  g.output("logits", logits);
  g.minimize(cross_entropy(logits, label), optim::SGD{.lr = 0.5, .momentum = 0.9}, {.clip_grad_norm = 0.1});
  return g.str();
}

/// The model program with fewer words and a smaller state.
static std::string smallLanguageModel() {
  std::string text = modelText("lstm", fmt::format("--batch {}", kBatch));
  for (auto [size, smaller] : {std::pair(10000, 50), {1024, 32}, {768, 24}, {512, 16}, {256, 8}})
    text = replaced(text, std::to_string(size), std::to_string(smaller));
  return text;
}

static Values batch(int step, int64_t rows) {
  std::string key = "batch" + std::to_string(step);
  std::vector<float> x = portableUniform(key + "x", size_t(rows * kSteps * kFeatures), -2, 2);
  auto integers = [&](const std::string &name, int64_t count, int64_t below) {
    std::vector<int64_t> values = portableIntegers(key + name, size_t(rows * count), uint64_t(below));
    return std::vector<double>(values.begin(), values.end());
  };
  return {{"x", {x.begin(), x.end()}},
          {"class", integers("label", 1, 3)},
          {"tokens", integers("words", 32, 50)},
          {"label", integers("next", 32, 50)}};
}

/// The inputs of a batch that the model reads.
static Values inputsOf(const Compiled &model, int step, int64_t rows) {
  Values all = batch(step, rows), inputs;
  for (const runtime::Value &input : model.plan().findEntry("train_step")->inputs)
    inputs[input.name] = all.at(input.name);
  return inputs;
}

static double train(Compiled &model, int step) {
  return model.run("train_step", inputsOf(model, step, kRows[step]), kRows[step]).at("loss")[0];
}

/// Replicas, their microbatches, and logical shards.
struct Shares {
  int64_t replicas, microbatches, shards;
};

class Carried : public testing::TestWithParam<Shares> {};

TEST_P(Carried, IsThatOfOneDevice) {
  for (const std::string &text : {network(), smallLanguageModel()}) {
    Compiled one = onSimulators(text, 1),
             several = onSimulators(text, GetParam().replicas, GetParam().microbatches, GetParam().shards);
    one.init(3);
    several.init(3);
    for (int step = 0; step < int(std::size(kRows)); ++step) {
      EXPECT_NEAR(train(several, step), train(one, step), 1e-11) << "step " << step;
      expectStatesOf(several, one);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Replicas, Carried,
                         testing::Values(Shares{2, 1, 0}, Shares{3, 1, 0}, Shares{1, 3, 0}, Shares{2, 2, 0},
                                         Shares{1, 1, 4}, Shares{2, 1, 4}),
                         [](const auto &info) {
                           return fmt::format("{}x{}of{}", info.param.replicas, info.param.microbatches,
                                              info.param.shards);
                         });

/// Each step uses other replicas than the step before, which receive only the states.
TEST(CarriedRows, GoOnWithOtherReplicas) {
  std::string text = network();
  Compiled one = onSimulators(text, 1);
  one.init(3);
  Values states;
  for (const runtime::State &state : one.plan().states)
    if (!state.isDerived())
      states[state.name] = one.state(state.name);
  for (int step = 0; step < int(std::size(kRows)); ++step) {
    Compiled next = onSimulators(text, 1 + step % 3);
    for (const auto &[name, values] : states)
      next.setState(name, values);
    EXPECT_NEAR(train(next, step), train(one, step), 1e-11) << "step " << step;
    for (auto &[name, values] : states)
      values = next.state(name);
    expectStatesOf(next, one);
  }
}

} // namespace sluice::test
