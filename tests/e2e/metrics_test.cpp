// Tests that metrics over several calls are those of all rows, for any division of rows into calls. The reference is a
// plain loop over all rows.
#include "runtime/runner/report/Means.h"
#include "sluice/sluice.h"
#include "tests/e2e/Harness.h"
#include "tests/e2e/Portable.h"
#include "tests/e2e/replicas/Replicated.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>

using namespace sluice::test;

namespace {

constexpr int64_t kSamples = 23, kKinds = 3, kUncounted = -100;

/// A model with one metric for each kind of dependence on rows. The only parameter is 1.
std::string model(const std::string &devices = "cpu") {
  using namespace sluice;
  Graph g("figures");
  g.set_devices(devices);
  g.set_capacity(32);
  Dim batch{"batch"};
  Tensor x = g.input("x", f32, {batch}), y = g.input("y", f32, {batch}),
         logits = g.input("logits", f32, {batch, kKinds}), label = g.input("label", i32, {batch});
  nn::Module root{g};
  Tensor w = root.parameter("w", {}, init::ones());
  Tensor hit = (x > 0.5).to(f32), tp = (hit * y).sum(), fp = (hit * (1 - y)).sum(), fn = ((1 - hit) * y).sum();
  g.metric("f1", {tp, fp, fn}, [](const auto &sums) { return 2 * sums[0] / (2 * sums[0] + sums[1] + sums[2]); });
  g.metric("precision", tp / (tp + fp)); // a formula without a declaration
  g.metric("rmse", {mse_loss(x, y)}, [](const auto &sums) { return sqrt(sums[0]); });
  g.metric("mae", w * (x - y).abs().mean());
  g.metric("total", (x * y).sum() * 3);
  g.metric("scaled", {(x * y).sum(), g.ones({}) * w}, [](const auto &sums) { return sums[0] * sums[0] * sums[1]; });
  g.metric("right", accuracy(logits, label, kUncounted));
  g.metric("largest", x.max());
  g.metric("spread", ((x - x.mean()) * (x - x.mean())).mean());
  g.minimize(cross_entropy(logits * w, label, {.ignore_index = kUncounted}), optim::SGD{.lr = 0});
  return g.str();
}

/// Data in which some calls have only ignored labels.
Values data() {
  std::vector<float> x = portableUniform("x", kSamples, 0, 1),
                     logits = portableUniform("logits", kSamples * kKinds, -1, 1);
  std::vector<int64_t> y = portableIntegers("y", kSamples, 2), label = portableIntegers("label", kSamples, kKinds);
  for (size_t i = 0; i < kSamples; ++i)
    if (i < 6 || i % 3 == 0)
      label[i] = kUncounted;
  return {{"x", {x.begin(), x.end()}},
          {"y", {y.begin(), y.end()}},
          {"logits", {logits.begin(), logits.end()}},
          {"label", {label.begin(), label.end()}}};
}

/// The metrics of one call with all rows.
std::map<std::string, double> expected(const Values &data) {
  const std::vector<double> &x = data.at("x"), &y = data.at("y"), &logits = data.at("logits"),
                            &label = data.at("label");
  double tp = 0, fp = 0, fn = 0, squares = 0, distances = 0, total = 0, counted = 0, loss = 0, right = 0;
  for (size_t i = 0; i < kSamples; ++i) {
    bool hit = x[i] > 0.5, is = y[i] == 1;
    tp += hit && is, fp += hit && !is, fn += !hit && is;
    squares += (x[i] - y[i]) * (x[i] - y[i]), distances += std::abs(x[i] - y[i]), total += x[i] * y[i];
    if (label[i] == kUncounted)
      continue;
    const double *line = &logits[i * kKinds];
    double sum = 0;
    for (int64_t c = 0; c < kKinds; ++c)
      sum += std::exp(line[c]);
    loss += std::log(sum) - line[size_t(label[i])];
    right += std::max_element(line, line + kKinds) - line == int64_t(label[i]);
    ++counted;
  }
  return {{"f1", 2 * tp / (2 * tp + fp + fn)}, {"precision", tp / (tp + fp)}, {"rmse", std::sqrt(squares / kSamples)},
          {"mae", distances / kSamples},       {"total", 3 * total},          {"scaled", total * total},
          {"right", right / counted},          {"loss", loss / counted}};
}

Values rowsOf(const Values &all, size_t first, size_t count) {
  Values some;
  for (const auto &[name, values] : all) {
    auto each = int64_t(values.size() / kSamples);
    some[name] = {values.begin() + int64_t(first) * each, values.begin() + int64_t(first + count) * each};
  }
  return some;
}

std::map<std::string, sluice::runtime::NamedFigure> figuresOf(Compiled &model, const std::string &entry,
                                                              const Values &data, size_t batch) {
  sluice::runtime::Means means(model.program(), model.program().entry(entry));
  for (size_t first = 0; first < kSamples; first += batch) {
    size_t rows = std::min(batch, size_t(kSamples) - first);
    model.submit(entry, rowsOf(data, first, rows), int64_t(rows));
    means.add(int64_t(rows));
  }
  std::map<std::string, sluice::runtime::NamedFigure> figures;
  for (const sluice::runtime::NamedFigure &figure : means.results())
    figures[figure.name] = figure;
  return figures;
}

void expectThoseOfAllRows(Compiled &model, const std::string &entry, const std::string &where) {
  model.init(1);
  Values all = data();
  for (size_t batch : {23, 16, 5, 1}) {
    auto figures = figuresOf(model, entry, all, batch);
    for (const auto &[name, value] : expected(all)) {
      EXPECT_TRUE(std::abs(figures.at(name).value - value) <= 1e-6 * std::abs(value))
          << name << " " << figures.at(name).value << " is not " << value << " in calls of " << batch << where;
      EXPECT_FALSE(figures.at(name).isOverCalls || figures.at(name).isUndefined) << name << where;
    }
    for (const char *name : {"largest", "spread"})
      EXPECT_TRUE(figures.at(name).isOverCalls) << name << where;
    EXPECT_EQ(figures.size(), expected(all).size() + 2) << where; // parts of formulas are not reported
  }
}

} // namespace

TEST(Metrics, AreThoseOfAllRowsInCallsOfAnySize) {
  Compiled one(model());
  expectThoseOfAllRows(one, "eval_step", "");
  expectThoseOfAllRows(one, "train_step", " of training");
}

TEST(Metrics, AreThoseOfAllRowsOnAnAcceleratorAndOnReplicas) {
  Compiled accelerator(model("sim:0"), {}, {.sim = "seed=3"});
  expectThoseOfAllRows(accelerator, "eval_step", " on an accelerator");
  Compiled replicas(onReplicas(model(), 2, "", /*syncBatchNorm=*/false));
  expectThoseOfAllRows(replicas, "eval_step", " on replicas");
  Compiled microbatches(onReplicas(model(), 1, "", /*syncBatchNorm=*/false, /*microbatches=*/3));
  expectThoseOfAllRows(microbatches, "train_step", " in microbatches");
}

TEST(Metrics, OfNoLabelThatCountsAreUndefined) {
  Compiled one(model());
  one.init(1);
  Values all = data();
  all["label"].assign(kSamples, kUncounted);
  auto figures = figuresOf(one, "eval_step", all, 16);
  for (const char *name : {"loss", "right"}) {
    EXPECT_TRUE(std::isnan(figures.at(name).value)) << name;
    EXPECT_TRUE(figures.at(name).isUndefined) << name;
  }
  EXPECT_FALSE(figures.at("f1").isUndefined);
}

// A model with static shapes has no batch dimension for the compiler. Declared metrics are combined nevertheless.
TEST(Metrics, OfAStaticSizeAreDeclared) {
  using namespace sluice;
  Graph g("fixed");
  Tensor x = g.input("x", f32, {4}), y = g.input("y", f32, {4});
  nn::Module root{g};
  Tensor w = root.parameter("w", {}, init::ones());
  g.metric("rmse", {mse_loss(x, y)}, [](const auto &sums) { return sqrt(sums[0]); });
  g.metric("ratio", {x.sum(), y.sum()}, [](const auto &sums) { return sums[0] / sums[1]; });
  g.minimize((w * x).mean(), optim::SGD{.lr = 0});
  Compiled one(g.str());
  one.init(1);
  runtime::Means means(one.program(), one.program().entry("eval_step"));
  one.submit("eval_step", {{"x", {1, 2, 3, 4}}, {"y", {1, 2, 3, 4}}}, 1);
  means.add(4);
  one.submit("eval_step", {{"x", {0, 0, 0, 0}}, {"y", {5, 5, 5, 5}}}, 1);
  means.add(4);
  std::map<std::string, double> figures;
  for (const runtime::NamedFigure &figure : means.results())
    figures[figure.name] = figure.value;
  EXPECT_NEAR(figures.at("rmse"), std::sqrt(12.5), 1e-6);
  EXPECT_NEAR(figures.at("ratio"), 10.0 / 30, 1e-6);
  EXPECT_NEAR(figures.at("loss"), 1.25, 1e-6);
}
