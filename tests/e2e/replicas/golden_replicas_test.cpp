// ResNet-56 with synchronized norms, with one or two rows per replica, compared with PyTorch's results.
#include "tests/e2e/GoldenNetworks.h"
#include "tests/e2e/GoldenTraining.h"
#include "tests/e2e/replicas/Replicated.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace sluice::test {

class GoldenReplicas : public testing::TestWithParam<int64_t> {};

TEST_P(GoldenReplicas, TrainAsPyTorch) {
  Golden golden(variant(kResNet56, "batch4"));
  std::string text = onReplicas(golden.modelWithOptimizer(), GetParam(), fmt::format("sim:0-{}", GetParam() - 1),
                                /*syncBatchNorm=*/true);
  Compiled model(text, {}, {.sim = "devices=3"});
  setInitial(model, golden);
  for (int step = 0; step < golden.steps(); ++step) {
    double loss = model.run("train_step", golden.batch(step), golden.rows()).at("loss")[0];
    std::printf("  step %d: loss %.9f, in f64 %.9f, allowed %.1e\n", step, loss, golden.loss(step),
                allowedError(golden.lossError()));
    EXPECT_NEAR(loss, golden.loss(step), allowedError(golden.lossError()) * golden.loss(step)) << "step " << step;
  }
}

INSTANTIATE_TEST_SUITE_P(Replicas, GoldenReplicas, testing::Values(2, 3));

} // namespace sluice::test
