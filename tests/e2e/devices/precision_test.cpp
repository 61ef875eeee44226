// Networks that train in bf16 or f16 from f32 weights learn as in f32. On learnable data and from the same initial
// values, the loss after fifty steps is within two percent. The test uses the host and an emulated CUDA device.
#include "tests/cuda_emu/Doubles.h"
#include "tests/e2e/Harness.h"
#include "tests/e2e/Portable.h"
#include "tests/e2e/devices/SmallLeNet.h"
#include "tests/e2e/devices/SmallResNet.h"
#include <cmath>
#include <cstdlib>
#include <gtest/gtest.h>
#include <tuple>

using namespace sluice::test;
using sluice::ir::Precision;

namespace {

constexpr int64_t kClasses = 10;
constexpr int kSteps = 50, kBatchesOfLoss = 8;
constexpr double kLossError = 0.02;

struct Place {
  const char *name, *network, *devices;
  double lr;
  int64_t rows = 16;

  bool is(std::string_view name) const { return name == network; }
  std::string text() const {
    return is("small_resnet") ? smallResNet(devices, rows)
           : is("small_lenet")
               ? smallLeNet(devices, rows)
               : modelText(network, "--input f32 --batch " + std::to_string(rows) + " --devices " + devices);
  }
  size_t channels() const { return is("small_resnet") ? kSmallResNetChannels : 1; }
  size_t side() const { return is("small_resnet") ? kSmallResNetSide : is("small_lenet") ? kSmallLeNetSide : 28; }

  /// Each class has a brightness for each quarter of each channel, plus noise.
  Values batch(int step) const {
    std::string key = "precision/" + std::to_string(step);
    size_t planes = size_t(rows) * channels(), side = this->side();
    std::vector<float> image = portableUniform(key, planes * side * side, -0.5, 0.5);
    std::vector<int64_t> labels = portableIntegers(key + "/label", size_t(rows), kClasses);
    for (size_t plane = 0; plane < planes; ++plane) {
      std::string shown = "precision/class" + std::to_string(labels[plane / channels()]);
      std::vector<float> quarters = portableUniform(shown, 4 * channels(), -1, 1);
      for (size_t i = 0; i < side * side; ++i)
        image[plane * side * side + i] +=
            quarters[plane % channels() * 4 + i / side * 2 / side * 2 + i % side * 2 / side];
    }
    return {{"image", {image.begin(), image.end()}}, {"label", {labels.begin(), labels.end()}}};
  }
};
constexpr Place kHost[] = {
    {"Mlp", "mlp", "cpu", 0.005}, {"LeNet", "lenet", "cpu", 0.03}, {"ResNet", "small_resnet", "cpu", 0.005}};
constexpr Place kEmulated[] = {{"Mlp", "mlp", "cuda:0", 0.005, 4}, {"SmallLeNet", "small_lenet", "cuda:0", 0.2}};
constexpr Place kEmulatedLong[] = {{"LongMlp", "mlp", "cuda:0", 0.005},
                                   {"LeNet", "lenet", "cuda:0", 0.03},
                                   {"ResNet", "small_resnet", "cuda:0", 0.005}};

sluice::CompileOptions in(Precision precision) {
  sluice::CompileOptions options;
  options.precision = dtypeOf(precision);
  return options;
}

/// The mean loss over batches that were not used for training.
double lossOf(const Place &place, Compiled &model) {
  double loss = 0;
  for (int i = 0; i < kBatchesOfLoss; ++i)
    loss += model.run("eval_step", place.batch(1000 + i), place.rows).at("loss")[0] / kBatchesOfLoss;
  return loss;
}

struct Losses {
  double before, after;
};

Losses train(const Place &place, Precision precision) {
  Compiled model(place.text(), in(precision));
  EXPECT_EQ(model.plan().build.precision, stringifyPrecision(precision).str());
  for (const sluice::runtime::State &state : model.plan().states)
    EXPECT_TRUE(state.isDerived() || sluice::runtime::sizeOf(state.dtype) >= 4) << state.name;
  model.init(3);
  model.setState("lr", {place.lr});
  Losses losses{lossOf(place, model), 0};
  for (int step = 0; step < kSteps; ++step)
    model.submit("train_step", place.batch(step), place.rows);
  losses.after = lossOf(place, model);
  return losses;
}

/// Compares with f32 on the host.
void compare(const Place &place, Precision precision) {
  Place host = place;
  host.devices = "cpu";
  Losses wide = train(host, Precision::F32), narrow = train(place, precision);
  std::printf("%s on %s in %s: loss %.5f, after %d steps %.5f, in f32 %.5f\n", place.network, place.devices,
              stringifyPrecision(precision).data(), narrow.before, kSteps, narrow.after, wide.after);
  EXPECT_LT(wide.after, 0.9 * wide.before) << "nothing is learnt";
  EXPECT_TRUE(std::fabs(narrow.after - wide.after) <= kLossError * wide.after)
      << narrow.after << ", in f32 " << wide.after;
  EXPECT_NE(narrow.before, wide.before) << "the forward pass is in f32";
}

using Case = std::tuple<Place, Precision>;
class OnTheHost : public testing::TestWithParam<Case> {};
class Emulated : public testing::TestWithParam<Case> {};
class EmulatedLong : public Emulated {};

std::string nameOf(const testing::TestParamInfo<Case> &info) {
  auto [place, precision] = info.param;
  return place.name + std::string(precision == Precision::F16 ? "InF16" : "InBF16");
}

} // namespace

TEST_P(OnTheHost, LearnsAsInF32) { std::apply(compare, GetParam()); }

static void compareEmulated(const Case &what) {
  setenv("CUDA_EMU_EFFORT", "least", /*overwrite=*/1); // each kernel runs a hundred times
  useCudaDoubles(/*devices=*/1, /*seed=*/5);
  std::apply(compare, what);
}

TEST_P(Emulated, LearnsAsInF32) { compareEmulated(GetParam()); }

TEST_P(EmulatedLong, LearnsAsInF32) {
  if (!std::getenv("SLUICE_TEST_FULL"))
    GTEST_SKIP() << "only with SLUICE_TEST_FULL=1";
  compareEmulated(GetParam());
}

const auto kNarrow = testing::Values(Precision::BF16, Precision::F16);
INSTANTIATE_TEST_SUITE_P(Precision, OnTheHost, testing::Combine(testing::ValuesIn(kHost), kNarrow), nameOf);
INSTANTIATE_TEST_SUITE_P(Precision, Emulated,
                         testing::Combine(testing::ValuesIn(kEmulated), testing::Values(Precision::BF16)), nameOf);
INSTANTIATE_TEST_SUITE_P(Precision, EmulatedLong,
                         testing::Combine(testing::ValuesIn(kEmulatedLong), testing::Values(Precision::BF16)), nameOf);
