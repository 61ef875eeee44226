// Replicas on emulated CUDA devices with emulated NCCL, compared with the interpreter and with each other.
#include "tests/Worse.h"
#include "tests/cuda_emu/Doubles.h"
#include "tests/e2e/Yardstick.h"
#include "tests/e2e/devices/LeNetBatches.h"
#include "tests/e2e/replicas/Replicated.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <gtest/gtest.h>

namespace sluice::test {

namespace {

constexpr int64_t kBatch = 8;

std::string onCuda(const std::string &model, int64_t replicas) {
  return onReplicas(model, replicas, fmt::format("cuda:0-{}", replicas - 1), /*syncBatchNorm=*/true);
}

std::string lenet(int64_t batch) { return modelText("lenet", fmt::format("--input f32 --batch {}", batch)); }

class CudaReplicas : public testing::TestWithParam<int64_t> {};
class ExchangingCudaReplicas : public CudaReplicas {};

} // namespace

/// With full batches, with row counts that no number of replicas divides, and with fewer rows than replicas; with and
/// without graphs.
TEST_P(CudaReplicas, TrainAsTheInterpreter) {
  useCudaDoubles(/*devices=*/4, /*seed=*/int(GetParam()));
  constexpr int64_t kFull = 16;
  Yardstick yardstick(lenet(kFull), {kFull, kFull, 7, 3, kFull}, lenetBatch);
  Compiled model(onCuda(lenet(kFull), GetParam()));
  yardstick.expectReplaysWithin(model);
}

INSTANTIATE_TEST_SUITE_P(Emulated, CudaReplicas, testing::Values(1, 2, 4));

/// Compared with replicas without sharded optimizer states.
TEST_P(ExchangingCudaReplicas, TrainInShards) {
  useCudaDoubles(/*devices=*/4, /*seed=*/int(GetParam()));
  std::string model = replaced(onCuda(lenet(kBatch), GetParam()), "momentum = 0.000000e+00", "momentum = 9.000000e-01");
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

/// The backend's count equals the number of enqueued collectives and the plan's prediction for these steps.
TEST_P(ExchangingCudaReplicas, ExchangeWhatThePlanSays) {
  useCudaDoubles(/*devices=*/4);
  Compiled several(onCuda(lenet(kBatch), GetParam()));
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

INSTANTIATE_TEST_SUITE_P(Emulated, ExchangingCudaReplicas, testing::Values(2, 4));

} // namespace sluice::test
