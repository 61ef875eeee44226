// ResNet-56 with synchronised norms, on few rows of which replicas have two or one, against PyTorch's figures.
#include "tests/e2e/Golden.h"
#include "tests/e2e/replicas/Replicated.h"

#include <cmath>
#include <fmt/format.h>
#include <gtest/gtest.h>

namespace sluice::test {

/// Three times PyTorch's own error in f32, as of one device.
static double allowedOf(double theirs) { return std::max(3 * theirs, 1e-6); }

class GoldenReplicas : public testing::TestWithParam<int64_t> {};

TEST_P(GoldenReplicas, TrainAsPyTorch) {
  Golden golden({"resnet56", "resnet56.batch4", {3, 32, 32}, 10, ".bn2."});
  std::string text = onReplicas(golden.modelWithOptimizer(), GetParam(), fmt::format("sim:0-{}", GetParam() - 1),
                                /*syncBatchNorm=*/true);
  Compiled model(text, {}, {.sim = "devices=3"});
  model.init(0);
  for (const std::string &name : golden.parameters())
    model.setState(name, golden.initial(name));
  for (int step = 0; step < golden.steps(); ++step) {
    double loss = model.run("train_step", golden.batch(step), golden.rows()).at("loss")[0];
    std::printf("  step %d: loss %.9f, in f64 %.9f, allowed %.1e\n", step, loss, golden.loss(step),
                allowedOf(golden.lossError()));
    EXPECT_NEAR(loss, golden.loss(step), allowedOf(golden.lossError()) * golden.loss(step)) << "step " << step;
  }
}

INSTANTIATE_TEST_SUITE_P(Replicas, GoldenReplicas, testing::Values(2, 3));

} // namespace sluice::test
