#include "tests/e2e/Yardstick.h"

#include "tests/e2e/GoldenTraining.h"

#include <gtest/gtest.h>

namespace sluice::test {

static constexpr uint64_t kSeed = 3;

Yardstick::Yardstick(const std::string &text, std::vector<int64_t> rows, Batch batch)
    : rows(std::move(rows)), batch(std::move(batch)) {
  Compiled model(text);
  for (const runtime::State &state : model.plan().states)
    if (state.kind == runtime::StateKind::parameter || state.kind == runtime::StateKind::statistic)
      names.push_back(state.name);
  EXPECT_FALSE(names.empty());
  model.init(kSeed);
  Interpreted interpreter(text);
  for (auto &[name, value] : interpreter.states)
    value.data = model.state(name);
  truth = trainFromHere(interpreter);
  host = trainFromHere(model);
}

TrainingResult Yardstick::train(Compiled &model) const {
  model.init(kSeed);
  return trainFromHere(model);
}

template <typename Model> TrainingResult Yardstick::trainFromHere(Model &model) const {
  TrainingResult result;
  for (const std::string &name : names)
    result.changes[name] = model.state(name);
  for (size_t step = 0; step < rows.size(); ++step)
    result.losses.push_back(model.run("train_step", batch(int(step), rows[step]), rows[step]).at("loss")[0]);
  for (auto &[name, change] : result.changes) {
    std::vector<double> after = model.state(name);
    for (size_t i = 0; i < change.size(); ++i)
      change[i] = after[i] - change[i];
  }
  return result;
}

static void expectAsNear(const std::string &what, const std::vector<double> &values, const std::vector<double> &host,
                         const std::vector<double> &truth) {
  double error = relativeError(values, truth), onHost = relativeError(host, truth);
  std::printf("  %-22s error %.2e, the host's %.2e\n", what.c_str(), error, onHost);
  EXPECT_TRUE(error <= allowedError(onHost)) << what << ": " << error << ", the host's is " << onHost;
}

void Yardstick::expectWithin(const TrainingResult &result) const {
  for (size_t step = 0; step < rows.size(); ++step)
    expectAsNear("loss of step " + std::to_string(step), {result.losses.at(step)}, {host.losses[step]},
                 {truth.losses[step]});
  for (const auto &[name, change] : truth.changes)
    expectAsNear(name, result.changes.at(name), host.changes.at(name), change);
}

void Yardstick::expectReplaysWithin(Compiled &model) const {
  TrainingResult replayed = train(model);
  expectWithin(replayed);
  EXPECT_GT(model.program().replayCount().replays, 0);
  model.restart({.replays = false});
  EXPECT_TRUE(train(model) == replayed) << "without graphs";
  EXPECT_EQ(model.program().replayCount().replays, 0);
}

} // namespace sluice::test
