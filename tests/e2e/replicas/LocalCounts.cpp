#include "tests/e2e/replicas/LocalCounts.h"

#include <cmath>
#include <gtest/gtest.h>
#include <numeric>

namespace sluice::test {

static constexpr uint64_t kSteps = 3;
static constexpr const char *kEntries[] = {"predict", "eval_step", "train_step"};

static double relativeDifference(const std::vector<double> &some, const std::vector<double> &others) {
  if (some.size() != others.size())
    return INFINITY;
  double worst = 0;
  for (size_t i = 0; i < some.size(); ++i) {
    double error = std::abs(some[i] - others[i]) / std::max(1.0, std::abs(others[i]));
    worst = std::isnan(error) ? INFINITY : std::max(worst, error);
  }
  return worst;
}

namespace {

/// The results of one device per step, and its final states.
struct Expected {
  std::vector<Values> outputs;
  std::map<std::string, std::vector<double>> states;
};

} // namespace

static Expected onOneDevice(const SharedModel &model, int64_t rows) {
  Interpreted one(model.text);
  one.init(3);
  Expected expected;
  for (uint64_t step = 0; step < kSteps; ++step)
    for (const char *entry : kEntries)
      expected.outputs.push_back(one.run(entry, model.batch(step, rows), rows));
  for (const auto &[name, state] : one.states)
    expected.states[name] = state.data;
  return expected;
}

static double errorOf(Replicated &several, const SharedModel &model, int64_t rows, const Expected &expected) {
  size_t replicas = model.shares.size();
  several.run("init", {{"key", {0, 3}}}, std::vector<int64_t>(replicas, 1));
  double worst = 0;
  size_t call = 0;
  for (uint64_t step = 0; step < kSteps; ++step)
    for (const char *entry : kEntries) {
      Values actual = several.run(entry, model.batch(step, rows), model.shares, step % replicas);
      for (const auto &[name, values] : expected.outputs[call])
        worst = std::max(worst, relativeDifference(actual.at(name), values));
      ++call;
    }
  for (const ir::StateMap &states : several.states)
    for (const auto &[name, values] : expected.states)
      if (auto found = states.find(name);
          found != states.end() && found->second.data.size() == values.size()) // not sharded
        worst = std::max(worst, relativeDifference(found->second.data, values));
  return worst;
}

static Replicated replicated(const SharedModel &model) {
  auto replicas = int64_t(model.shares.size());
  std::string text = model.sharesOptimizer ? withShards(onReplicas(model.text, replicas, "")) : model.text;
  return Replicated(text, size_t(replicas), model.syncBatchNorm, {}, "parallel", model.microbatches, model.shards);
}

std::string Plants::text() const {
  std::string all = std::to_string(unnoticed.size()) + " are not noticed:";
  for (const std::string &where : unnoticed)
    all += " " + where + ";";
  return all;
}

Plants plantLocalCounts(const SharedModel &model) {
  constexpr double kAllowed = 1e-11;
  int64_t rows = std::accumulate(model.shares.begin(), model.shares.end(), int64_t(0));
  Expected expected = onOneDevice(model, rows);
  Replicated sound = replicated(model);
  EXPECT_LE(errorOf(sound, model, rows, expected), kAllowed) << model.text;
  Plants plants;
  for (size_t place = 0; place < sound.counts(); ++place) {
    Replicated wrong = replicated(model);
    std::string where = wrong.takeLocal(place);
    if (errorOf(wrong, model, rows, expected) > kAllowed)
      ++plants.noticed;
    else
      plants.unnoticed.push_back(where);
  }
  return plants;
}

} // namespace sluice::test
