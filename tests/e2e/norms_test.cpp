// Normalization within a row, transposed convolutions and functions of indices. Training agrees with the interpreter
// and has the same bits for any number of threads, with and without fusion.
#include "sluice/sluice.h"
#include "tests/Worse.h"
#include "tests/e2e/Harness.h"
#include "tests/e2e/Portable.h"
#include <cmath>
#include <gtest/gtest.h>

using namespace sluice::test;

namespace {

constexpr int64_t kRows = 12, kTime = 5, kWidth = 24, kClasses = 3;

void finish(sluice::Graph &graph, const sluice::Tensor &logits) {
  using namespace sluice;
  graph.output("logits", logits);
  graph.minimize(cross_entropy(logits, graph.input("label", i32, {Dim{"batch"}})),
                 optim::SGD{.lr = 0.1, .momentum = 0.9});
}

/// A layer on sequences: mixes earlier positions; norms of both kinds, over one dimension and several.
std::string sequences(sluice::DType dtype) {
  using namespace sluice;
  Graph g("sequences");
  g.set_capacity(kRows);
  g.set_dtype(dtype);
  nn::Module root{g};
  nn::LayerNorm first{&root, "first", kWidth}, whole{&root, "whole", {kTime, kWidth}, {.eps = 0.01, .bias = false}};
  nn::RMSNorm second{&root, "second", kWidth};
  nn::Linear mix{&root, "mix", kTime, kTime}, up{&root, "up", kWidth, 2 * kWidth}, fc{&root, "fc", kWidth, kClasses};
  nn::Conv1d line{&root, "line", kTime, kTime, 3, {.padding = 1}};
  Tensor x = g.input("x", dtype, {Dim{"batch"}, kTime, kWidth});
  x = x + matmul(tril(mix.weight), first(x));
  std::vector<Tensor> halves = up(second(x)).chunk(2, -1);
  x = x + silu(halves[0]) * halves[1] + line(x) * g.arange(0, 0.1 * double(kTime) - 0.05, 0.1, dtype).unsqueeze(1);
  x = whole(x) / (1.0 + x.var(-1, 1, true)) + logsumexp(x, 1, true) * tanh(prod(x, 1, true));
  finish(g, fc(x.mean(1)));
  return g.str();
}

/// A small U-Net: channel groups, a transposed convolution and nearest-neighbor upsampling.
std::string images(sluice::DType dtype) {
  using namespace sluice;
  Graph g("images");
  g.set_capacity(kRows);
  g.set_dtype(dtype);
  nn::Module root{g};
  nn::Conv2d in{&root, "in", 3, 8, 3, {.padding = 1}}, down{&root, "down", 8, 16, 2, {.stride = 2}};
  nn::GroupNorm norm{&root, "norm", 4, 8}, each{&root, "each", 16, 16}, all{&root, "all", 1, 16, {.affine = false}};
  nn::ConvTranspose2d up{&root, "up", 16, 8, 3, {.stride = 2, .padding = 1, .output_padding = 1, .groups = 2}};
  nn::Upsample nearest{&root, "nearest", 2};
  nn::AdaptiveAvgPool2d pool{&root, "pool", 1};
  nn::Linear fc{&root, "fc", 24, kClasses};
  Tensor x = g.input("x", dtype, {Dim{"batch"}, 3, 8, 8});
  Tensor wide = relu(norm(in(x))), deep = all(gelu(each(down(wide))));
  finish(g, fc(pool(cat({wide + up(deep), nearest(deep)}, 1)).flatten(1)));
  return g.str();
}

Values batchOf(const std::string &key, int64_t elements, int64_t rows) {
  std::vector<float> x = portableUniform(key, size_t(rows * elements), -1, 1);
  std::vector<int64_t> label = portableIntegers(key + "/label", size_t(rows), kClasses);
  return {{"x", {x.begin(), x.end()}}, {"label", {label.begin(), label.end()}}};
}

struct Net {
  const char *name;
  std::string (*text)(sluice::DType);
  int64_t elements;

  Values batch(int64_t rows) const { return batchOf(name, elements, rows); }
};

class Norms : public testing::TestWithParam<Net> {};

/// All states after two steps; the second step is short.
std::vector<std::byte> trained(const Net &net, sluice::DType dtype, int threads, bool fuse = true) {
  sluice::CompileOptions options;
  options.fuse = fuse;
  Compiled model(net.text(dtype), options, {.threads = threads});
  model.init(7);
  for (int64_t rows : {kRows, int64_t(5)})
    model.run("train_step", net.batch(rows), rows);
  return model.stateBytes();
}

} // namespace

TEST_P(Norms, TrainAsTheInterpreter) {
  std::string text = GetParam().text(sluice::f64);
  Compiled model(text);
  Interpreted reference(text);
  model.init(3);
  for (auto &[name, value] : reference.states)
    value.data = model.state(name);
  for (int64_t rows : {kRows, int64_t(7)}) {
    Values actual = model.run("train_step", GetParam().batch(rows), rows),
           expected = reference.run("train_step", GetParam().batch(rows), rows);
    EXPECT_LT(largestDifference(actual.at("loss"), expected.at("loss")), 1e-12);
    for (auto &[name, value] : reference.states)
      EXPECT_LT(largestDifference(model.state(name), value.data), 1e-11) << name;
  }
}

TEST_P(Norms, HaveTheSameBitsOnAnyNumberOfThreads) {
  for (sluice::DType dtype : {sluice::f32, sluice::f64}) {
    std::vector<std::byte> one = trained(GetParam(), dtype, 1);
    EXPECT_EQ(one, trained(GetParam(), dtype, 2));
    EXPECT_EQ(one, trained(GetParam(), dtype, 4));
    EXPECT_EQ(one, trained(GetParam(), dtype, 2, /*fuse=*/false));
  }
}

INSTANTIATE_TEST_SUITE_P(Nets, Norms,
                         testing::Values(Net{"sequences", sequences, kTime *kWidth}, Net{"images", images, 3 * 8 * 8}),
                         [](const testing::TestParamInfo<Net> &info) { return info.param.name; });

//===- batch norm -------------------------------------------------------------------------------------------------===//

namespace {

constexpr int64_t kChannels = 3;

/// One batch norm applied to two inputs, as in siamese networks.
std::string twoViews() {
  using namespace sluice;
  Graph g("views");
  g.set_capacity(kRows);
  g.set_dtype(f64);
  nn::Module root{g};
  nn::BatchNorm2d bn{&root, "bn", kChannels, {.eps = 0.1}};
  Tensor a = g.input("a", f64, {Dim{"batch"}, kChannels}), b = g.input("b", f64, {Dim{"batch"}, kChannels});
  Tensor y = bn(a) - 2 * bn(b);
  g.output("y", y);
  g.minimize(square(y).sum(1).mean(), optim::SGD{.lr = 0});
  return g.str();
}

/// Updates running statistics by a batch [n, kChannels] with momentum 0.1; the variance is unbiased.
void move(std::vector<double> &mean, std::vector<double> &var, const std::vector<double> &batch) {
  double n = double(batch.size()) / kChannels;
  for (size_t c = 0; c < kChannels; ++c) {
    double sum = 0, squares = 0;
    for (size_t i = c; i < batch.size(); i += kChannels)
      sum += batch[i];
    for (size_t i = c; i < batch.size(); i += kChannels)
      squares += (batch[i] - sum / n) * (batch[i] - sum / n);
    mean[c] += 0.1 * (sum / n - mean[c]);
    var[c] += 0.1 * (squares / (n - 1) - var[c]);
  }
}

std::vector<double> uniform(const std::string &key, int64_t rows, double shift) {
  std::vector<float> values = portableUniform(key, size_t(rows * kChannels), float(shift) - 1, float(shift) + 1);
  return {values.begin(), values.end()};
}

/// A model whose batch norm has one value per channel in each row of x [batch or 1, kChannels].
std::string oneValue(bool hasRows, int64_t capacity) {
  using namespace sluice;
  Graph g("one");
  g.set_capacity(capacity);
  nn::Module root{g};
  nn::BatchNorm2d bn{&root, "bn", kChannels};
  Tensor x = g.input("x", f32, hasRows ? Shape{Dim{"batch"}, kChannels} : Shape{1, kChannels});
  Tensor y = bn(x);
  g.output("y", y);
  g.minimize(y.sum(), optim::SGD{.lr = 0});
  return g.str();
}

} // namespace

TEST(BatchNorm, MovesItsStatisticsOncePerCallInOrder) {
  std::vector<double> mean(kChannels, 0), var(kChannels, 1);
  Compiled model(twoViews());
  model.init(1);
  for (int64_t rows : {kRows, int64_t(5)}) {
    std::vector<double> a = uniform("a", rows, 3), b = uniform("b", rows, -1);
    model.run("train_step", {{"a", a}, {"b", b}}, rows);
    move(mean, var, a);
    move(mean, var, b);
    EXPECT_LT(largestDifference(model.state("bn.running_mean"), mean), 1e-14);
    EXPECT_LT(largestDifference(model.state("bn.running_var"), var), 1e-14);
  }
  std::vector<double> a = uniform("c", 2, 0), b = uniform("d", 2, 0), y;
  for (size_t i = 0; i < a.size(); ++i) {
    auto normalized = [&](double x) { return (x - mean[i % kChannels]) / std::sqrt(var[i % kChannels] + 0.1); };
    y.push_back(normalized(a[i]) - 2 * normalized(b[i]));
  }
  EXPECT_LT(largestDifference(model.run("predict", {{"a", a}, {"b", b}}, 2).at("y"), y), 1e-14);
}

TEST(BatchNorm, OfOneValuePerChannelKeepsTheRunningVariance) {
  Compiled model(oneValue(/*hasRows=*/true, 4));
  Interpreted reference(oneValue(/*hasRows=*/true, 4));
  EXPECT_EQ(model.plan().leastTrainingRows, 2);
  model.init(1);
  for (auto &[name, value] : reference.states)
    value.data = model.state(name);
  for (double x : {3.0, -2.0, 7.0}) {
    model.run("train_step", {{"x", {x, x, x}}}, 1);
    reference.run("train_step", {{"x", {x, x, x}}}, 1);
  }
  EXPECT_EQ(model.state("bn.running_var"), std::vector<double>(kChannels, 1));
  EXPECT_EQ(reference.state("bn.running_var"), std::vector<double>(kChannels, 1));
  EXPECT_LT(largestDifference(model.state("bn.running_mean"), reference.state("bn.running_mean")), 1e-6);
  EXPECT_GT(model.state("bn.running_mean")[0], 0.5);
}

TEST(BatchNorm, OfOneValuePerChannelByItsShapeIsNotTrained) {
  std::string fixed = compileError(oneValue(/*hasRows=*/false, 1)), single = compileError(oneValue(true, 1));
  EXPECT_NE(fixed.find("cannot train batch normalization of [1, 3]: each channel has one value, which has no variance"),
            std::string::npos)
      << fixed;
  EXPECT_NE(single.find("with up to 1 row: each channel has one value"), std::string::npos) << single;
  EXPECT_NE(single.find("norms_test.cpp:"), std::string::npos) << single;
}
