// Replicas on emulated CUDA devices, which exchange by the double of NCCL, against the same program on one.
#include "tests/Worse.h"
#include "tests/cuda_emu/Doubles.h"
#include "tests/e2e/devices/LeNetBatches.h"
#include "tests/e2e/replicas/Replicated.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <gtest/gtest.h>

namespace sluice::test {

namespace {

constexpr int64_t kBatch = 8;
constexpr double kAllowed = 1e-5; // of f32: sums have another order

class CudaReplicas : public testing::TestWithParam<int64_t> {};

std::string onCuda(int64_t replicas) {
  std::string devices = replicas == 1 ? "cuda:0" : fmt::format("cuda:0-{}", replicas - 1);
  std::string model = modelText("lenet", fmt::format("--input f32 --batch {}", kBatch));
  return onReplicas(model, replicas, devices);
}

} // namespace

/// With batches that are full, short, and of fewer rows than there are replicas.
TEST_P(CudaReplicas, TrainAsOneDevice) {
  useCudaDoubles(/*devices=*/4, /*seed=*/int(GetParam()));
  Compiled one(onCuda(1)), several(onCuda(GetParam()));
  one.init(3);
  several.init(3);
  int step = 0;
  for (int64_t rows : {kBatch, kBatch, int64_t(5), int64_t(1), kBatch}) {
    Values batch = lenetBatch(step++, rows);
    double expected = one.run("train_step", batch, rows).at("loss")[0];
    double actual = several.run("train_step", batch, rows).at("loss")[0];
    EXPECT_TRUE(std::abs(actual - expected) <= kAllowed * std::abs(expected)) << actual << ", not " << expected;
  }
  double worst = 0;
  for (const runtime::State &state : one.plan().states) {
    std::vector<double> expected = one.state(state.name), actual = several.state(state.name);
    ASSERT_EQ(actual.size(), expected.size()) << state.name;
    for (size_t i = 0; i < expected.size(); ++i)
      worst = worse(worst, std::abs(actual[i] - expected[i]) / std::max(1.0, std::abs(expected[i])));
  }
  EXPECT_TRUE(worst <= kAllowed) << worst;
  RecordProperty("worst", fmt::format("{}", worst));
}

/// Against replicas that keep all of what the optimizer keeps.
TEST_P(CudaReplicas, TrainInShards) {
  useCudaDoubles(/*devices=*/4, /*seed=*/int(GetParam()));
  if (GetParam() == 1)
    GTEST_SKIP() << "one replica has all of it";
  std::string model = replaced(onCuda(GetParam()), "momentum = 0.000000e+00", "momentum = 9.000000e-01");
  Compiled all(model), shards(withShards(model));
  all.init(3);
  shards.init(3);
  for (int step = 0; step < 3; ++step)
    for (Compiled *program : {&all, &shards})
      program->run("train_step", lenetBatch(step, kBatch - 3 * step), kBatch - 3 * step);
  double worst = 0;
  for (const runtime::State &state : all.plan().states) {
    std::vector<double> expected = all.state(state.name), actual = shards.state(state.name);
    for (size_t i = 0; state.isKept() && i < expected.size(); ++i)
      worst = worse(worst, std::abs(actual.at(i) - expected[i]));
  }
  EXPECT_TRUE(worst <= 1e-6) << worst;
  for (const runtime::CollectiveReport &report : shards.program().collectives())
    EXPECT_FALSE(report.differs());
}

/// What was put into queues is what the backend counted, and what the plan says of so many steps.
TEST_P(CudaReplicas, ExchangeWhatThePlanSays) {
  useCudaDoubles(/*devices=*/4);
  Compiled several(onCuda(GetParam()));
  several.init(3);
  constexpr int kSteps = 3;
  for (int step = 0; step < kSteps; ++step)
    several.run("train_step", lenetBatch(step, kBatch), kBatch);
  runtime::CollectiveCount planned;
  for (const runtime::ListedAction &listed : several.program().entry("train_step").allActions())
    if (const runtime::Collective *collective = listed.action->collective();
        collective && collective->kind == runtime::Collective::Kind::allReduce) {
      planned.exchanges += kSteps;
      planned.bytes += kSteps * collective->bytesFor(GetParam());
    }
  EXPECT_GT(planned.bytes, 0);
  bool found = false;
  for (const runtime::CollectiveReport &report : several.program().collectives()) {
    EXPECT_FALSE(report.differs());
    if (report.kind != runtime::Collective::Kind::allReduce)
      continue;
    found = true;
    ASSERT_TRUE(report.counted);
    EXPECT_EQ(report.counted->exchanges, planned.exchanges);
    EXPECT_EQ(report.counted->bytes, planned.bytes);
  }
  EXPECT_TRUE(found);
}

INSTANTIATE_TEST_SUITE_P(Emulated, CudaReplicas, testing::Values(2, 4));

} // namespace sluice::test
