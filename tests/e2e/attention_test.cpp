// Attention: training agrees with the interpreter, and has the same bits for any number of threads, on an accelerator
// and under pins. Replicas agree with one device. Inference has no buffer of the size of all scores.
#include "sluice/sluice.h"
#include "tests/Worse.h"
#include "tests/e2e/Harness.h"
#include "tests/e2e/Portable.h"
#include "tests/e2e/devices/RandomGraph.h"
#include "tests/e2e/replicas/Replicated.h"
#include <gtest/gtest.h>
#include <string>

using namespace sluice::test;

namespace {

constexpr int64_t kRows = 6, kItems = 19, kWidth = 12, kClasses = 3;

/// A causal attention block with padding masked, and one whose heads share keys and add a bias.
std::string network(sluice::DType dtype, const std::string &devices = "cpu") {
  using namespace sluice;
  Graph g("attention");
  g.set_devices(devices);
  g.set_capacity(kRows);
  g.set_dtype(dtype);
  nn::Module root{g};
  nn::MultiheadAttention attention{&root, "attention", kWidth, 2, {.batch_first = true, .is_causal = true}};
  nn::LayerNorm norm{&root, "norm", kWidth};
  nn::Linear q{&root, "q", kWidth, 4 * 3}, kv{&root, "kv", kWidth, 2 * 2 * 3}, fc{&root, "fc", 4 * 3, kClasses};
  Tensor bias = root.parameter("bias", {4, kItems, kItems}, init::uniform(-1, 1));
  Tensor x = g.input("x", dtype, {Dim{"batch"}, kItems, kWidth}),
         padding = g.input("padding", u8, {Dim{"batch"}, kItems}), label = g.input("label", i32, {Dim{"batch"}});
  x = x + attention(norm(x), {.key_padding_mask = ne(padding, 0)});
  auto inHeads = [](const Tensor &x, int64_t heads) {
    return x.reshape({x.shape()[0], kItems, heads, 3}).transpose(1, 2);
  };
  std::vector<Tensor> shared = kv(x).chunk(2, 2);
  Tensor y =
      scaled_dot_product_attention(inHeads(q(x), 4), inHeads(shared[0], 2), inHeads(shared[1], 2), {.attn_mask = bias});
  Tensor logits = fc(y.transpose(1, 2).flatten(2)).mean(1);
  g.output("logits", logits);
  g.minimize(cross_entropy(logits, label), optim::SGD{.lr = 0.1, .momentum = 0.9});
  return g.str();
}

Values batch(int64_t rows) {
  std::vector<float> x = portableUniform("x", size_t(rows * kItems * kWidth), -1, 1);
  std::vector<int64_t> padding = portableIntegers("padding", size_t(rows * kItems), 5),
                       label = portableIntegers("label", size_t(rows), kClasses);
  Values inputs{{"x", {x.begin(), x.end()}}, {"label", {label.begin(), label.end()}}};
  for (size_t i = 0; i < padding.size(); ++i)
    inputs["padding"].push_back(i % kItems != 0 && padding[i] == 0); // the first attends to itself
  return inputs;
}

/// All states after several steps; the last step has a short batch.
std::vector<std::byte> trained(const std::string &text, const sluice::CompileOptions &options, const RunOptions &run) {
  Compiled model(text, options, run);
  model.init(7);
  for (int64_t rows : {kRows, int64_t(2)})
    model.run("train_step", batch(rows), rows);
  return model.stateBytes();
}

/// By name, because devices place states at other offsets.
std::map<std::string, std::vector<double>> trainedStates(const std::string &text, const RunOptions &run) {
  Compiled model(text, {}, run);
  model.init(7);
  for (int64_t rows : {kRows, int64_t(2)})
    model.run("train_step", batch(rows), rows);
  std::map<std::string, std::vector<double>> states;
  for (const sluice::runtime::State &state : model.plan().states)
    states[state.name] = model.state(state.name);
  return states;
}

} // namespace

TEST(Attention, TrainsAsTheInterpreter) {
  std::string text = network(sluice::f64);
  Compiled model(text);
  Interpreted reference(text);
  model.init(3);
  for (auto &[name, value] : reference.states)
    value.data = model.state(name);
  for (int64_t rows : {kRows, int64_t(3)})
    EXPECT_LT(largestDifference(model.run("train_step", batch(rows), rows).at("loss"),
                                reference.run("train_step", batch(rows), rows).at("loss")),
              1e-12);
  for (auto &[name, value] : reference.states)
    EXPECT_LT(largestDifference(model.state(name), value.data), 1e-11) << name;
}

TEST(Attention, HasTheSameBitsOnAnyNumberOfThreadsAndOnAnAccelerator) {
  std::string text = network(sluice::f32);
  std::vector<std::byte> one = trained(text, {}, {.threads = 1});
  EXPECT_EQ(one, trained(text, {}, {.threads = 2}));
  EXPECT_EQ(one, trained(text, {}, {.threads = 4}));
  EXPECT_EQ(one, trained(network(sluice::f32, "sim:0"), {}, {.sim = "seed=3"}));
  sluice::CompileOptions unfused;
  unfused.fuse = false;
  EXPECT_EQ(one, trained(text, unfused, {}));
}

TEST(Attention, HasTheSameBitsUnderPins) {
  std::string text = network(sluice::f32);
  EXPECT_EQ(trainedStates(text, {}), trainedStates(randomlyPinned(text, "cpu,sim:0", 5), {.sim = "seed=3"}));
}

TEST(Attention, IsEqualOnReplicasAndInMicrobatches) {
  std::string text = network(sluice::f64);
  for (auto [shares, microbatches] :
       {std::pair<std::vector<int64_t>, int64_t>({4, 2}, 1), {{1, 2, 3}, 1}, {{kRows}, 2}})
    expectAsOneDevice(text, batch(kRows), shares, microbatches, /*steps=*/1);
}

// Tests that no buffer of inference is as large as the scores of one head.
TEST(Attention, NeverStoresAllScoresInInference) {
  using namespace sluice;
  constexpr int64_t kLong = 1024, kHead = 32;
  Graph g("inference");
  g.set_capacity(1);
  nn::Module root{g};
  nn::MultiheadAttention attention{&root, "attention", 2 * kHead, 2, {.batch_first = true}};
  g.output("y", attention(g.input("x", f32, {Dim{"batch"}, kLong, 2 * kHead})));
  Compiled model(g.str());
  int64_t bytes = 0;
  for (const runtime::Arena &arena : model.plan().arenas)
    bytes += arena.bytes;
  EXPECT_LT(bytes, kLong * kLong * int64_t(sizeof(float)));
}

// Tests that products and a softmax replace attention where the CPU has no kernel: heads of more than 256 elements.
TEST(Attention, OfDeepHeadsIsItsFormula) {
  using namespace sluice;
  constexpr int64_t kDeep = 264, kFew = 4;
  Graph g("deep");
  g.set_capacity(kRows);
  g.set_dtype(f64);
  nn::Module root{g};
  Tensor weight = root.parameter("weight", {kDeep}, init::uniform(-1, 1)),
         bias = root.parameter("bias", {2, kFew, 1}, init::uniform(-1, 1));
  Tensor x = g.input("x", f64, {Dim{"batch"}, 2, kFew, kDeep});
  Tensor y = scaled_dot_product_attention(x * weight, x, x * weight, {.attn_mask = bias, .is_causal = true});
  g.output("y", y);
  g.minimize(square(y).mean(), optim::SGD{.lr = 0.1, .momentum = 0.9});
  Compiled model(g.str());
  EXPECT_EQ(model.planText().find("scaled_dot_product_attention"), std::string::npos);
  Interpreted reference(g.str());
  model.init(3);
  for (auto &[name, value] : reference.states)
    value.data = model.state(name);
  std::vector<float> values = portableUniform("deep", size_t(kRows * 2 * kFew * kDeep), -1, 1);
  Values inputs{{"x", {values.begin(), values.end()}}};
  EXPECT_LT(largestDifference(model.run("train_step", inputs, kRows).at("loss"),
                              reference.run("train_step", inputs, kRows).at("loss")),
            1e-12);
  for (auto &[name, value] : reference.states)
    EXPECT_LT(largestDifference(model.state(name), value.data), 1e-12) << name;
}

// Tests that in mixed precision, attention reads and writes bf16 and keeps logarithms in f32.
TEST(Attention, ComputesInNarrowTypes) {
  sluice::CompileOptions options;
  options.precision = sluice::bf16;
  std::string text = network(sluice::f32);
  Compiled narrow(text, options), wide(text);
  narrow.init(7);
  wide.init(7);
  double rounded = narrow.run("train_step", batch(kRows), kRows).at("loss")[0],
         exact = wide.run("train_step", batch(kRows), kRows).at("loss")[0];
  EXPECT_NEAR(rounded, exact, 0.02);
  EXPECT_NE(rounded, exact);
}
