// The training loop on arrays.
#include "sluice/array.h"
#include "sluice/array/fit.h"
#include "sluice/sluice.h"
#include "tests/TemporaryFolder.h"
#include "tests/cuda_emu/Doubles.h"

#include <gmock/gmock.h>

#include <cmath>
#include <filesystem>

namespace sluice {
namespace {

struct Line : Learner {
  using Learner::Learner;
  nn::LazyLinear fc{this, "fc", 1};
  double rate = 0.1;
  Tensor forward(Tensor x) override { return fc(x); }
  Array training_step(const Batch &batch) override { return mse_loss((*this)(batch[0]), batch[1]); }
  optim::Optimizer configure_optimizers() override { return optim::SGD{.lr = rate}; }
};

/// Rows of 2 x0 - 3.4 x1 + 4.2.
std::vector<Batch> batchesOf(int count, int seed) {
  std::vector<Batch> batches;
  for (int number = 0; number < count; ++number) {
    std::vector<float> x, y;
    for (int row = 0; row < 16; ++row) {
      float a = std::sin(float(seed + number * 16 + row) * 1.3f), b = std::cos(float(seed + number * 16 + row) * 2.1f);
      x.insert(x.end(), {a, b});
      y.push_back(2 * a - 3.4f * b + 4.2f);
    }
    batches.push_back({array(x, {16, 2}), array(y, {16, 1})});
  }
  return batches;
}

class checklist_41_trainer : public testing::TestWithParam<const char *> {
protected:
  static void SetUpTestSuite() { test::useCudaDoubles(/*devices=*/2); }
  void SetUp() override { set_devices(GetParam()); }
};

TEST_P(checklist_41_trainer, UsesTheAcceleratorsThatThereAre) {
  EXPECT_EQ(Trainer({.num_gpus = 0}).devices().size(), 0u);
  EXPECT_EQ(int(Trainer({.num_gpus = 1}).devices().size()), std::min(1, gpu_count()));
  EXPECT_EQ(int(Trainer({.num_gpus = 8}).devices().size()), gpu_count());
}

TEST_P(checklist_41_trainer, MovesBatchesAndModelAndFits) {
  Line line;
  Trainer trainer({.max_epochs = 12, .num_gpus = 1});
  Device place = try_gpu();
  for (const Array &array : trainer.prepare_batch(batchesOf(1, 0)[0]))
    EXPECT_EQ(array.device(), place);
  std::vector<Epoch> epochs = trainer.fit(line, {.train = batchesOf(8, 0), .validation = batchesOf(2, 500)});
  ASSERT_EQ(epochs.size(), 12u);
  EXPECT_LT(epochs.back().loss, 1e-3);
  EXPECT_LT(*epochs.back().validation_loss, 1e-3);
  for (const Array &parameter : line.parameters())
    EXPECT_EQ(parameter.device(), place);
  std::vector<float> weight = line.state_dict()[0].second.to_vector<float>();
  EXPECT_NEAR(weight[0], 2, 0.05);
  EXPECT_NEAR(weight[1], -3.4, 0.05);
}

TEST_P(checklist_41_trainer, ClipsTheNormOfTheGradients) {
  Line line;
  std::vector<Batch> batch = batchesOf(1, 0);
  line(batch[0][0]); // creates the parameters
  std::vector<std::vector<float>> before;
  for (const Array &parameter : line.parameters())
    before.push_back(parameter.to_vector<float>());
  Trainer({.max_epochs = 1, .gradient_clip_val = 0.5}).fit(line, {.train = batch});
  double norm = 0;
  for (size_t i = 0; i < before.size(); ++i) {
    std::vector<float> after = line.parameters()[i].to_vector<float>();
    for (size_t j = 0; j < after.size(); ++j)
      norm += std::pow((after[j] - before[i][j]) / 0.1, 2);
  }
  EXPECT_NEAR(std::sqrt(norm), 0.5, 1e-4); // of the step, divided by the learning rate
}

TEST_P(checklist_41_trainer, CallsItsCallbacks) {
  test::TemporaryFolder folder;
  std::string path = folder / "line.safetensors";
  Line line;
  line.rate = 0; // nothing is learned
  Trainer trainer({.max_epochs = 10, .callbacks = {checkpoint(path), early_stopping(2)}});
  EXPECT_EQ(trainer.fit(line, {.train = batchesOf(1, 0)}).size(), 3u);
  EXPECT_TRUE(std::filesystem::exists(path));
  Line other;
  other(batchesOf(1, 0)[0][0]);
  other.load(path);
  EXPECT_EQ(other.parameters()[0].to_vector<float>(), line.parameters()[0].cpu().to_vector<float>());
}

INSTANTIATE_TEST_SUITE_P(Devices, checklist_41_trainer,
                         testing::Values("cpu", "cpu,sim:0,sim:1", "cpu,cuda:0,cuda:1"), [](const auto &info) {
                           std::string list = info.param;
                           return list == "cpu" ? "Host" : list.find("sim") != std::string::npos ? "Virtual" : "EmulatedCuda";
                         });

} // namespace
} // namespace sluice
