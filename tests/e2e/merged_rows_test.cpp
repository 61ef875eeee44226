// Rows merged with the following dimension. Results for tokens must equal those for rows of tokens, on one device, on
// several devices, and on replicas with uneven rows.
#include "sluice/sluice.h"
#include "tests/e2e/Portable.h"
#include "tests/e2e/TrainedAlike.h"

#include <gmock/gmock.h>

using namespace sluice::test;

namespace {

constexpr int64_t kRows = 6, kLength = 4, kWidth = 5, kHidden = 8, kClasses = 3, kIgnored = -100;

/// A language model's loss: of [rows*T, V] as in PyTorch, or of [rows, T, V].
std::string network(bool merged, sluice::DType dtype, const std::string &devices = "cpu") {
  using namespace sluice;
  Graph g("tokens");
  g.set_devices(devices);
  g.set_capacity(kRows);
  g.set_dtype(dtype);
  Tensor x = g.input("x", dtype, {Dim{"batch"}, kLength, kWidth}),
         label = g.input("label", i32, {Dim{"batch"}, kLength});
  nn::Module root{g};
  nn::Linear in{&root, "in", kWidth, kHidden}, out{&root, "out", kHidden, kClasses};
  nn::LayerNorm norm{&root, "norm", {kHidden}};
  Tensor mean = root.buffer("mean", {kHidden}, init::zeros()), var = root.buffer("var", {kHidden}, init::constant(1)),
         gain = root.parameter("gain", {kHidden}, init::uniform(0.5, 1.5));
  auto batchNorm = [&](const Tensor &y) { return batch_norm(y, mean, var, gain); };
  nn::Embedding table{&root, "table", kClasses, kHidden};
  Tensor weight = root.buffer("class_weight", {kClasses}, init::uniform(0.5, 2));
  Tensor known = where(label >= 0.0, label, 0 * label);
  Tensor logits, labels, h;
  if (merged) {
    h = norm(gelu(in(x.flatten(0, 1)))) + table(known.view({-1}));
    h = batchNorm(h * softmax(h, 1)) + (h - h.mean({0, 1})) * 0.1 + h.max(1, true);
    h = h + matmul(h, h.reshape({Dim{"batch"}, kLength, kHidden}).mean(0).mean(0).unsqueeze(1)) * 0.1;
    logits = out(h);
    labels = label.reshape({-1});
    h = einsum("tc,tc->t", logits, logits).view({Dim{"batch"}, kLength});
  } else {
    h = norm(gelu(in(x))) + table(known);
    h = batchNorm((h * softmax(h, 2)).transpose(1, 2)).transpose(1, 2) + (h - h.mean({0, 1, 2})) * 0.1 + h.max(2, true);
    h = h + matmul(h, h.mean({0, 1}).unsqueeze(1)) * 0.1;
    logits = out(h).transpose(1, 2);
    labels = label;
    h = square(logits).sum(1);
  }
  g.output("h", h);
  CrossEntropyOptions options{.weight = weight, .ignore_index = kIgnored, .label_smoothing = 0.1};
  g.metric("right", accuracy(logits, labels, kIgnored));
  g.metric("best", top_k_accuracy(logits, labels, 2, kIgnored));
  g.metric("nll", nll_loss(log_softmax(logits, 1), labels, {.ignore_index = kIgnored}));
  Tensor zeros = zeros_like(logits);
  Tensor loss = cross_entropy(logits, labels, options) + cross_entropy(logits, softmax(logits, 1) * 0.5) * 0.1 +
                mse_loss(logits, zeros) * 0.1;
  options.reduction = Reduction::none;
  Tensor each = cross_entropy(logits, labels, options);
  g.output("each", merged ? each.reshape({Dim{"batch"}, kLength}) : each);
  g.minimize(loss, optim::SGD{.lr = 0.1, .momentum = 0.9});
  return g.str();
}

/// The first rows have few labels that are not ignored.
Values batch() {
  std::vector<float> x = portableUniform("x", size_t(kRows * kLength * kWidth), -1, 1);
  std::vector<int64_t> label = portableIntegers("label", size_t(kRows * kLength), kClasses),
                       chance = portableIntegers("ignored", size_t(kRows * kLength), kRows);
  for (int64_t i = 0; i < kRows * kLength; ++i)
    if (chance[size_t(i)] > i / kLength)
      label[size_t(i)] = kIgnored;
  return {{"x", {x.begin(), x.end()}}, {"label", {label.begin(), label.end()}}};
}

} // namespace

TEST(MergedRows, AreTokensOfRows) {
  Interpreted merged(network(true, sluice::f64)), plain(network(false, sluice::f64));
  merged.init(3);
  plain.init(3);
  for (int64_t rows : {kRows, int64_t(1), int64_t(5)})
    for (const char *entry : {"predict", "eval_step", "train_step"}) {
      Values actual = merged.run(entry, batch(), rows);
      for (const auto &[name, values] : plain.run(entry, batch(), rows))
        EXPECT_LT(largestDifference(actual.at(name), values), 1e-10) << entry << " " << name << " " << rows;
    }
  for (const auto &[name, value] : plain.states)
    EXPECT_LT(largestDifference(merged.state(name), value.data), 1e-10) << name;
}

TEST(MergedRows, HaveTheGradientsOfDifferences) {
  expectGradientsOfDifferences(network(true, sluice::f64), batch(), kRows, {"in.weight", "out.bias", "norm.bias"});
}

TEST(MergedRows, TrainAsTheInterpreter) { expectTrainsAsTheInterpreter(network(true, sluice::f64), batch(), kRows); }

TEST(MergedRows, HaveTheSameBitsOnAnyNumberOfThreadsAndOnAnAccelerator) {
  expectSameBits(network(true, sluice::f32), network(true, sluice::f32, "sim:0"), batch(), kRows);
}

TEST(MergedRows, AreEqualOnReplicas) {
  expectSameOnReplicas(network(true, sluice::f64), batch(), {{4, 2}, {1, 0, 5}, {1, 4, 1}});
}
