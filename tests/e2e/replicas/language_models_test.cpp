// Language models on several replicas and in microbatches compared with one device: an LSTM whose rows carry state, and
// a transformer. Both have dropout, unevenly ignored labels, and gradients clipped by the global norm.
#include "runtime/instance/Weights.h"
#include "runtime/io/Safetensors.h"
#include "sluice/sluice.h"
#include "tests/Worse.h"
#include "tests/e2e/Portable.h"
#include "tests/e2e/replicas/LocalCounts.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace sluice::test {

static constexpr int64_t kBatch = 6, kLength = 4, kWords = 11, kWidth = 8, kHeads = 2, kIgnored = -100;
static constexpr double kDropout = 0.1, kNorm = 0.1;
static constexpr int64_t kRows[] = {6, 6, 2, 1, 6, 5};

namespace {

/// As in GPT-2.
struct Block : nn::Module {
  using Module::Module;
  nn::LayerNorm ln_1{this, "ln_1", kWidth}, ln_2{this, "ln_2", kWidth};
  nn::Linear c_attn{this, "c_attn", kWidth, 3 * kWidth}, c_proj{this, "c_proj", kWidth, kWidth},
      c_fc{this, "c_fc", kWidth, 4 * kWidth}, c_mlp{this, "c_mlp", 4 * kWidth, kWidth};

  static Tensor heads(const Tensor &x) {
    return x.reshape({x.shape()[0], kLength, kHeads, kWidth / kHeads}).transpose(1, 2);
  }

  Tensor forward(Tensor x) override {
    std::vector<Tensor> parts = c_attn(ln_1(x)).chunk(3, 2);
    Tensor y = scaled_dot_product_attention(heads(parts[0]), heads(parts[1]), heads(parts[2]), {.is_causal = true});
    x = x + dropout(c_proj(y.transpose(1, 2).flatten(2)), kDropout);
    return x + dropout(c_mlp(gelu(c_fc(ln_2(x)), Gelu::tanh)), kDropout);
  }
};

} // namespace

/// Adds the outputs and the training of scores.
static std::string finished(Graph &g, const Tensor &scores, const Tensor &next, const optim::Optimizer &optimizer) {
  Tensor logits = scores.transpose(1, 2);
  g.output("logits", logits);
  g.metric("accuracy", accuracy(logits, next, kIgnored));
  g.minimize(cross_entropy(logits, next, {.ignore_index = kIgnored}), optimizer, {.clip_grad_norm = kNorm});
  return g.str();
}

static std::string recurrent() {
  Graph g("recurrent");
  g.set_capacity(kBatch);
  g.set_dtype(f64);
  Tensor words = g.input("words", i32, {Dim{"batch"}, kLength}), next = g.input("next", i32, {Dim{"batch"}, kLength});
  nn::Module root{g};
  nn::Embedding embedding{&root, "embedding", kWords, kWidth};
  nn::LSTM lstm{&root, "lstm", kWidth, kWidth, {.num_layers = 2, .batch_first = true, .stateful = true}};
  nn::Linear fc{&root, "fc", kWidth, kWords};
  return finished(g, fc(dropout(lstm(dropout(embedding(words), kDropout)), kDropout)), next,
                  optim::SGD{.lr = 0.1, .momentum = 0.9});
}

/// With one weight for the embedding and the output projection. The gradient of keys' biases is zero except for
/// rounding, which is divided by `eps`.
static std::string transformer() {
  Graph g("transformer");
  g.set_capacity(kBatch);
  g.set_dtype(f64);
  Tensor words = g.input("words", i32, {Dim{"batch"}, kLength}), next = g.input("next", i32, {Dim{"batch"}, kLength});
  nn::Module root{g};
  nn::Embedding wte{&root, "wte", kWords, kWidth};
  Tensor positions = root.parameter("positions", {kLength, kWidth}, init::normal(0, 1));
  Block first{&root, "first"}, second{&root, "second"};
  nn::LayerNorm ln_f{&root, "ln_f", kWidth};
  Tensor x = second(first(dropout(wte(words) + positions, kDropout)));
  return finished(g, linear(ln_f(x), wte.weight), next,
                  optim::AdamW{.lr = 0.1, .betas = {0.9, 0.95}, .eps = 1e-4, .weight_decay = 0.1});
}

/// The first row has only ignored labels; later rows have fewer and fewer.
static Values batch(int64_t step, int64_t rows) {
  std::string key = "language/" + std::to_string(step);
  auto integers = [&](const std::string &name, int64_t below) {
    return portableIntegers(key + name, size_t(rows * kLength), uint64_t(below));
  };
  std::vector<int64_t> words = integers("words", kWords), next = integers("next", kWords),
                       chance = integers("ignored", kBatch);
  for (int64_t i = 0; i < rows * kLength - 1; ++i)
    if (chance[size_t(i)] >= i / kLength)
      next[size_t(i)] = kIgnored;
  return {{"words", {words.begin(), words.end()}}, {"next", {next.begin(), next.end()}}};
}

static double train(Compiled &model, int step) {
  return model.run("train_step", batch(step, kRows[step]), kRows[step]).at("loss")[0];
}

TEST(LanguageModels, AreOneDevicesInTheInterpreter) {
  for (const std::string &text : {recurrent(), transformer()})
    for (auto [shares, microbatches] :
         {std::pair<std::vector<int64_t>, int64_t>({4, 2}, 1), {{1, 3, 2}, 1}, {{kBatch}, 3}, {{1, 5}, 2}})
      expectAsOneDevice(text, batch(0, kBatch), shares, microbatches, /*steps=*/3);
}

/// Counts of labels, and gradient norms.
TEST(LanguageModels, NoticeALocalSumAnywhere) {
  auto rows = [](uint64_t step, int64_t count) { return batch(int64_t(step), count); };
  for (const std::string &text : {recurrent(), transformer()}) {
    Plants plants = plantLocalCounts({text, {3, 3}, rows, /*syncBatchNorm=*/false, /*microbatches=*/2});
    EXPECT_GT(plants.noticed, 5u);
    EXPECT_TRUE(plants.unnoticed.empty()) << plants.text() << " of " << text;
  }
}

/// Replicas, and their microbatches.
struct Shares {
  int64_t replicas, microbatches;
};

class LanguageModelsOn : public testing::TestWithParam<Shares> {};

TEST_P(LanguageModelsOn, AreOneDevicesAndGoOnFromACheckpoint) {
  constexpr int kSaved = 3;
  TemporaryFolder folder;
  std::string file = folder.path() + "/states.safetensors";
  for (const std::string &text : {recurrent(), transformer()}) {
    Compiled one = onSimulators(text, 1), several = onSimulators(text, GetParam().replicas, GetParam().microbatches);
    one.init(3);
    several.init(3);
    std::vector<double> losses;
    for (int step = 0; step < int(std::size(kRows)); ++step) {
      if (step == kSaved)
        runtime::saveStates(several.program(), file, {});
      losses.push_back(train(several, step));
      EXPECT_NEAR(losses.back(), train(one, step), 1e-11) << "step " << step;
      expectStatesOf(several, one);
    }
    std::vector<std::byte> states = several.stateBytes();
    several.restart({.sim = "devices=4,seed=5"});
    several.init(4);
    runtime::loadStates(several.program(), runtime::SafetensorsFile(file), file);
    for (int step = kSaved; step < int(std::size(kRows)); ++step)
      EXPECT_EQ(train(several, step), losses[size_t(step)]) << "step " << step;
    EXPECT_TRUE(several.stateBytes() == states) << "other bits than without a stop";
  }
}

INSTANTIATE_TEST_SUITE_P(Replicas, LanguageModelsOn,
                         testing::Values(Shares{2, 1}, Shares{3, 1}, Shares{1, 3}, Shares{2, 2}), [](const auto &info) {
                           return fmt::format("{}x{}", info.param.replicas, info.param.microbatches);
                         });

} // namespace sluice::test
