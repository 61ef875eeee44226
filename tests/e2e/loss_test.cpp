// Losses with labels: valid labels of a call, and classes in another dimension.
#include "sluice/sluice.h"
#include "tests/e2e/Harness.h"
#include "tests/e2e/Portable.h"
#include <cmath>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace sluice::test;

namespace {

constexpr int64_t kRows = 6, kLength = 7, kWidth = 4, kClasses = 5;

/// Next-word prediction in the form of language models: logits [batch, length, classes].
std::string words(sluice::CrossEntropyOptions options, bool isReadTwice = false) {
  using namespace sluice;
  Graph g("words");
  g.set_capacity(kRows);
  Tensor x = g.input("x", f32, {Dim{"batch"}, kLength, kWidth}), label = g.input("label", i32, {Dim{"batch"}, kLength});
  nn::Module root{g};
  nn::Linear fc{&root, "fc", kWidth, kClasses};
  Tensor logits = fc(x);
  g.output("logits", logits);
  Tensor loss = cross_entropy(logits.transpose(1, 2), label, options);
  options.reduction = Reduction::none;
  g.metric("nll", cross_entropy(logits.transpose(1, 2), label, options).sum(1).mean());
  g.metric("words", ne(label, -100).to(f32).sum(1).mean());
  if (isReadTwice)
    loss = loss + one_hot(label, 4).mean();
  g.minimize(loss, optim::SGD{.lr = 0.5});
  return g.str();
}

Values batch(int64_t rows) {
  std::vector<float> x = portableUniform("x", size_t(rows * kLength * kWidth), -1, 1);
  std::vector<int64_t> label = portableIntegers("label", size_t(rows * kLength), 4);
  return {{"x", {x.begin(), x.end()}}, {"label", {label.begin(), label.end()}}};
}

/// The error for an invalid label; empty if it is valid.
std::string errorOf(Compiled &model, double label) {
  Values inputs = batch(kRows);
  inputs["label"][kLength + 2] = label;
  sluice::runtime::Status status = sluice::runtime::guarded([&] { model.run("train_step", inputs, kRows); });
  EXPECT_EQ(status.code, status.message.empty() ? sluice::runtime::ExitCode::ok : sluice::runtime::ExitCode::invalid);
  return status.message;
}

} // namespace

TEST(Loss, RefusesLabelsThatNameNoClassAndAreNotIgnored) {
  Compiled model(words({.ignore_index = -100}));
  model.init(1);
  EXPECT_EQ(errorOf(model, -100), "");
  EXPECT_EQ(errorOf(model, kClasses - 1), "");
  EXPECT_THAT(errorOf(model, kClasses),
              testing::HasSubstr("input 'label', row 1: 5 is none of the 5 classes 0 to 4 and the ignored -100"));
  EXPECT_THAT(errorOf(model, -1), testing::HasSubstr("-1 is none of the 5 classes"));
}

TEST(Loss, RefusesWhatOneOfTwoReadersRefuses) {
  Compiled model(words({.ignore_index = -100}, /*isReadTwice=*/true)), inRange(words({.ignore_index = 4}, true)),
      known(words({.ignore_index = 3}, true));
  for (Compiled *each : {&model, &inRange, &known})
    each->init(1);
  EXPECT_THAT(errorOf(model, -100), testing::HasSubstr("-100 is none of the 4 classes 0 to 3"));
  EXPECT_THAT(errorOf(inRange, 4), testing::HasSubstr("4 is none of the 4 classes 0 to 3"));
  EXPECT_EQ(errorOf(known, 3), "");
}

TEST(Loss, IsNoNumberWhereAllLabelsAreIgnored) {
  Compiled model(words({.ignore_index = -100}));
  model.init(1);
  Values inputs = batch(kRows);
  inputs["label"].assign(size_t(kRows * kLength), -100);
  EXPECT_TRUE(std::isnan(model.run("eval_step", inputs, kRows).at("loss").at(0)));
  inputs["label"][5] = 1;
  EXPECT_FALSE(std::isnan(model.run("eval_step", inputs, kRows).at("loss").at(0)));
}

// See perplexity in ops/losses.h.
TEST(Loss, OfAnEvaluationFollowsFromSumsOfRows) {
  Compiled model(words({.ignore_index = -100}));
  model.init(1);
  Values all = batch(kRows);
  for (size_t i = 0; i < size_t(2 * kLength); i += 2)
    all["label"][i] = -100;
  auto part = [&](size_t first, size_t rows) {
    Values some;
    for (auto &[name, values] : all) {
      size_t each = values.size() / kRows;
      some[name] = {values.begin() + int64_t(first * each), values.begin() + int64_t((first + rows) * each)};
    }
    return model.run("eval_step", some, int64_t(rows));
  };
  Values whole = part(0, kRows), first = part(0, 2), second = part(2, 4);
  auto mean = [&](const char *name) { return (2 * first.at(name)[0] + 4 * second.at(name)[0]) / 6; };
  double loss = whole.at("loss")[0];
  EXPECT_NEAR(mean("nll") / mean("words"), loss, 1e-6 * loss);
  EXPECT_GT(std::abs(mean("loss") - loss), 1e-4) << "calls ignore unevenly";
}

TEST(Loss, ReadsLogitsWhereTheyLie) {
  Compiled model(words({.ignore_index = -100}));
  for (const sluice::runtime::Kernel &kernel : model.plan().kernels)
    EXPECT_THAT(kernel.ops, testing::Not(testing::Contains("sluice.transpose"))) << kernel.name;
}
