// Losses with unevenly ignored, weighted and smoothed labels, on several replicas compared with one device. The divisor
// of a mean depends on data only.
#include "sluice/sluice.h"
#include "tests/Worse.h"
#include "tests/e2e/Portable.h"
#include "tests/e2e/replicas/LocalCounts.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

using namespace sluice::test;

namespace {

constexpr int64_t kCapacity = 12, kLength = 3, kWidth = 4, kClasses = 5, kIgnored = -100;

std::string words(bool weighs, double smoothing, std::optional<double> clip = {}) {
  using namespace sluice;
  Graph g("words");
  g.set_capacity(kCapacity);
  Tensor x = g.input("x", f32, {Dim{"batch"}, kLength, kWidth}), label = g.input("label", i32, {Dim{"batch"}, kLength});
  nn::Module root{g};
  nn::Linear fc{&root, "fc", kWidth, kClasses};
  Tensor weight = root.buffer("class_weight", {kClasses}, init::uniform(0.5, 2)), logits = fc(x).transpose(1, 2);
  CrossEntropyOptions options{
      .weight = weighs ? weight : Tensor(), .ignore_index = kIgnored, .label_smoothing = smoothing};
  g.metric("nll", nll_loss(log_softmax(logits, 1), label, {options.weight, options.ignore_index}));
  g.metric("best", top_k_accuracy(logits, label, 2, kIgnored));
  g.metric("right", accuracy(logits, label, kIgnored));
  options.reduction = Reduction::none;
  g.output("each", cross_entropy(logits, label, options));
  options.reduction = Reduction::mean;
  g.minimize(cross_entropy(logits, label, options), optim::SGD{.lr = 0.2, .momentum = 0.9}, {.clip_grad_norm = clip});
  return g.str();
}

/// The first rows have few labels that are not ignored, and the very first has none.
Values batch(int64_t step, int64_t rows) {
  std::string key = "losses/" + std::to_string(step);
  std::vector<float> x = portableUniform(key, size_t(rows * kLength * kWidth), -1, 1);
  std::vector<int64_t> label = portableIntegers(key, size_t(rows * kLength), kClasses),
                       chance = portableIntegers(key + "/ignored", size_t(rows * kLength), rows);
  for (int64_t i = 0; i < rows * kLength - 1; ++i)
    if (chance[size_t(i)] >= i / kLength)
      label[size_t(i)] = kIgnored;
  return {{"x", {x.begin(), x.end()}}, {"label", {label.begin(), label.end()}}};
}

void expectSame(const Values &actual, const Values &expected, const std::string &where) {
  for (const auto &[name, values] : expected)
    EXPECT_TRUE(largestDifference(actual.at(name), values) <= 1e-12) << name << " " << where;
}

const std::pair<bool, double> kForms[] = {{false, 0}, {true, 0}, {false, 0.1}, {true, 0.1}};

} // namespace

TEST(ReplicatedLosses, AreOneDevicesInTheInterpreter) {
  const std::vector<std::vector<int64_t>> allShares = {{5, 7}, {0, 4, 3}, {1, 10, 1}, {2, 0, 1}};
  for (auto [weighs, smoothing] : kForms)
    for (const std::vector<int64_t> &shares : allShares) {
      std::string text = words(weighs, smoothing);
      Interpreted one(text);
      Replicated several(text, shares.size(), /*syncBatchNorm=*/false);
      one.init(3);
      several.run("init", {{"key", {0, 3}}}, std::vector<int64_t>(shares.size(), 1));
      int64_t rows = 0;
      for (int64_t share : shares)
        rows += share;
      for (int64_t step = 0; step < 3; ++step)
        for (const char *entry : {"predict", "eval_step", "train_step"}) {
          Values inputs = batch(step, rows);
          expectSame(several.run(entry, inputs, shares, shares.size() - 1), one.run(entry, inputs, rows),
                     fmt::format("of {}, step {}, {} replicas, weights {}, smoothing {}", entry, step, shares.size(),
                                 weighs, smoothing));
        }
      for (const sluice::ir::StateMap &states : several.states)
        EXPECT_TRUE(largestDifference(states.at("fc.weight").data, one.state("fc.weight")) <= 1e-12);
    }
}

TEST(ReplicatedLosses, NoticeALocalCountAnywhere) {
  auto rows = [](uint64_t step, int64_t count) { return batch(int64_t(step), count); };
  for (auto [weighs, smoothing] : kForms)
    for (std::optional<double> clip : {std::optional<double>(), std::optional(0.05)})
      for (int64_t shards : {0, 4}) {
        SharedModel model{words(weighs, smoothing, clip), {6, 6}, rows, /*syncBatchNorm=*/false};
        model.shards = shards;
        Plants plants = plantLocalCounts(model);
        EXPECT_GT(plants.noticed, 5u);
        EXPECT_TRUE(plants.unnoticed.empty()) << plants.text() << " of " << model.text;
      }
}

TEST(ReplicatedLosses, AreOneDevicesWhereTheyAreCompiled) {
  sluice::CompileOptions options;
  options.dtype = sluice::f64;
  for (auto [weighs, smoothing] : kForms) {
    std::string text = words(weighs, smoothing);
    int64_t replicas = weighs ? 3 : 2;
    Compiled one(text, options), several(onReplicas(text, replicas, fmt::format("sim:0-{}", replicas - 1)), options,
                                         {.sim = "devices=4,seed=3"});
    one.init(7);
    several.init(7);
    for (int64_t rows : {12, 1, 7, 2}) // compares replicas without rows with one device whose rows are all ignored
      for (const char *entry : {"predict", "eval_step", "train_step"})
        expectSame(several.run(entry, batch(rows, rows), rows), one.run(entry, batch(rows, rows), rows),
                   fmt::format("of {}, {} rows, weights {}, smoothing {}", entry, rows, weighs, smoothing));
    EXPECT_TRUE(largestDifference(several.state("fc.weight"), one.state("fc.weight")) <= 1e-12);
  }
}
