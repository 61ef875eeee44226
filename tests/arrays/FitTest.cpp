// The training loop on arrays.
#include "sluice/array/fit.h"
#include "sluice/array.h"
#include "sluice/array/functional.h"
#include "sluice/array/mirrored.h"
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

class OnDevices : public testing::TestWithParam<const char *> {
protected:
  static void SetUpTestSuite() { test::useCudaDoubles(/*devices=*/2); }
  void SetUp() override { set_devices(GetParam()); }
};

using checklist_38_lazy_layers = OnDevices;
using checklist_39_functional_form = OnDevices;
using checklist_41_trainer = OnDevices;

TEST_P(checklist_38_lazy_layers, InferTheirInputOnTheChosenDevice) {
  for (const Device &device : try_all_gpus()) {
    Line line;
    line.to(device);
    EXPECT_EQ(line(ones({3, 5}, f32, device)).shape(), (std::vector<std::int64_t>{3, 1}));
    for (const auto &[name, array] : line.state_dict()) {
      EXPECT_EQ(array.device(), device) << name;
      EXPECT_EQ(array.shape(), name == "fc.weight" ? (std::vector<std::int64_t>{1, 5}) : std::vector<std::int64_t>{1});
    }
  }
}

TEST_P(checklist_39_functional_form, InitGivesATreeAndApplyReadsIt) {
  Device place = try_gpu();
  Line line;
  Array x = ones({3, 2}, f32, place);
  nn::States states = nn::init(line, random::key(5, place), x), again = nn::init(line, random::key(5, place), x);
  nn::States other = nn::init(line, random::key(6, place), x);
  ASSERT_EQ(states.size(), 2u);
  EXPECT_EQ(states[0].first, "fc.weight");
  std::vector<std::vector<float>> before;
  for (size_t i = 0; i < states.size(); ++i) {
    EXPECT_EQ(states[i].second.device(), place);
    before.push_back(states[i].second.to_vector<float>());
    EXPECT_EQ(before[i], again[i].second.to_vector<float>());
    EXPECT_NE(before[i], other[i].second.to_vector<float>());
  }
  states[0].second.attach_grad();
  {
    auto tape = record();
    Array y = nn::apply(line, states, x);
    EXPECT_NEAR(y.cpu()[{0}].item(), before[0][0] + before[0][1] + before[1][0], 1e-6);
    y.backward();
  }
  EXPECT_EQ(states[0].second.grad().to_vector<float>(), (std::vector<float>{3, 3}));
  for (size_t i = 0; i < states.size(); ++i)
    EXPECT_EQ(states[i].second.to_vector<float>(), before[i]) << "leaves do not change";
  EXPECT_NE(line.parameters()[0].to_vector<float>(), before[0]);
  nn::States wrong{states[1], states[0]};
  try {
    nn::apply(line, wrong, x);
    FAIL();
  } catch (const Error &error) {
    EXPECT_THAT(error.what(),
                testing::HasSubstr("apply: state 1 is 'fc.bias' [1] of f32, and the module has 'fc.weight' [1, 2]"));
  }
}

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

using MirroredReplicas = OnDevices;

TEST_P(MirroredReplicas, TrainAsOneAndStayEqual) {
  auto loss = [](const Array &result, const Array &target) { return mse_loss(result, target); };
  std::vector<Batch> batches = batchesOf(6, 0);
  Mirrored<Line> one({cpu()}), all(try_all_gpus());
  for (Mirrored<Line> *each : {&one, &all})
    each->minimize(optim::Adam{.lr = 0.05});
  std::vector<double> losses[2];
  for (Mirrored<Line> *each : {&one, &all}) {
    manual_seed(3);
    for (const Batch &batch : batches) {
      Array x = batch[0].slice(0, 0, 15), y = batch[1].slice(0, 0, 15); // uneven shares
      losses[each == &all].push_back(each->train_batch(x, y, loss).item());
    }
  }
  for (size_t i = 0; i < batches.size(); ++i)
    EXPECT_NEAR(losses[1][i], losses[0][i], 1e-4 * losses[0][i]);
  for (size_t number = 0; number < one.replica().parameters().size(); ++number) {
    std::vector<float> wanted = one.replica().parameters()[number].to_vector<float>();
    std::vector<float> first = all.replica().parameters()[number].to_vector<float>();
    for (size_t i = 0; i < wanted.size(); ++i)
      EXPECT_NEAR(first[i], wanted[i], 1e-4);
    for (size_t replica = 1; replica < all.devices().size(); ++replica)
      EXPECT_EQ(all.replica(replica).parameters()[number].to_vector<float>(), first)
          << "replicas stay equal, in all bits";
  }
}

std::string nameOf(const testing::TestParamInfo<const char *> &info) {
  std::string list = info.param;
  return list == "cpu" ? "Host" : list.find("sim") != std::string::npos ? "Virtual" : "EmulatedCuda";
}
#define SLUICE_ON_DEVICES(name)                                                                                        \
  INSTANTIATE_TEST_SUITE_P(Devices, name, testing::Values("cpu", "cpu,sim:0,sim:1", "cpu,cuda:0,cuda:1"), nameOf)
SLUICE_ON_DEVICES(checklist_38_lazy_layers);
SLUICE_ON_DEVICES(checklist_39_functional_form);
SLUICE_ON_DEVICES(checklist_41_trainer);
SLUICE_ON_DEVICES(MirroredReplicas);

} // namespace
} // namespace sluice
