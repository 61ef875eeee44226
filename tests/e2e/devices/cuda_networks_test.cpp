// Networks that train on emulated CUDA devices, alone, on several and beside the host, agree with the host alone.
#include "tests/cuda_emu/Doubles.h"
#include "tests/e2e/Harness.h"
#include "tests/e2e/Portable.h"
#include "tests/e2e/devices/SmallResNet.h"
#include <cmath>
#include <gtest/gtest.h>

using namespace sluice::test;

namespace {

constexpr int64_t kRows = 16;
constexpr int kSteps = 5;
// Of losses, and of the norm of a parameter's change: kernels add in another order than the host's.
constexpr double kLossError = 1e-5, kChangeError = 1e-4;

struct Place {
  const char *name, *network, *devices;

  bool isResNet() const { return std::string(network) == "small_resnet"; }
  std::string textFor(const std::string &which) const {
    return isResNet() ? smallResNet(which, kRows)
                      : modelText(network, "--input f32 --batch 16 --copies insert --devices " + which);
  }
  Values batch(int step) const {
    std::string key = "devices/step" + std::to_string(step);
    int64_t pixels = isResNet() ? kSmallResNetChannels * kSmallResNetSide * kSmallResNetSide : 28 * 28;
    std::vector<float> image = portableUniform(key, size_t(kRows * pixels));
    std::vector<int64_t> labels = portableIntegers(key + "/label", size_t(kRows), 10);
    return {{"image", {image.begin(), image.end()}}, {"label", {labels.begin(), labels.end()}}};
  }
};
constexpr Place kPlaces[] = {
    {"LenetOnOne", "lenet", "cuda:0"},
    {"LenetOnTwo", "lenet", "cuda:0,cuda:1 --pin conv=gpu:0 --pin fc=gpu:1"},
    {"LenetBesideTheHost", "lenet", "cpu,cuda:0 --pin conv=gpu:0"},
    {"MlpOnOne", "mlp", "cuda:0"},
    {"MlpOnFour", "mlp",
     "cuda:0,cuda:1,cuda:2,cuda:3 --pin hidden=gpu:0 --pin fc1=gpu:1 --pin fc2=gpu:2 --pin fc3=gpu:3"},
    {"ResNetOnOne", "small_resnet", "cuda:0"},
    {"ResNetOnTwo", "small_resnet", "cuda:0,cuda:1"},
    {"ResNetOnFour", "small_resnet", "cuda:0,cuda:1,cuda:2,cuda:3"},
    {"ResNetBesideTheHost", "small_resnet", "cpu,cuda:0"},
};

struct Trained {
  std::vector<double> losses;
  std::map<std::string, std::vector<double>> before, after; // parameters
};

Trained train(const Place &place, Compiled &model) {
  Trained trained;
  model.init(3);
  auto parameters = [&] {
    std::map<std::string, std::vector<double>> values;
    for (const sluice::runtime::State &state : model.plan().states)
      if (state.kind == sluice::runtime::StateKind::parameter)
        values[state.name] = model.state(state.name);
    return values;
  };
  trained.before = parameters();
  for (int step = 0; step < kSteps; ++step)
    trained.losses.push_back(model.run("train_step", place.batch(step), kRows).at("loss")[0]);
  trained.after = parameters();
  return trained;
}

double norm(const std::vector<double> &a, const std::vector<double> &b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i)
    sum += (a[i] - b[i]) * (a[i] - b[i]);
  return std::sqrt(sum);
}

class CudaNetworks : public testing::TestWithParam<Place> {};

} // namespace

TEST_P(CudaNetworks, TrainAsOnTheHost) {
  const Place &place = GetParam();
  useCudaDoubles(/*devices=*/4, /*seed=*/int(place.name[0]));
  Compiled host(place.textFor("cpu")), model(place.textFor(place.devices));
  Trained expected = train(place, host), trained = train(place, model);
  for (int step = 0; step < kSteps; ++step)
    EXPECT_NEAR(trained.losses[size_t(step)], expected.losses[size_t(step)], kLossError * expected.losses[size_t(step)])
        << "step " << step;
  ASSERT_FALSE(expected.after.empty());
  for (const auto &[name, values] : expected.after) {
    double change = norm(values, expected.before.at(name)), error = norm(values, trained.after.at(name));
    EXPECT_GT(change, 0) << name;
    EXPECT_TRUE(error <= kChangeError * change) << name << ": " << error << " of " << change;
  }
}

INSTANTIATE_TEST_SUITE_P(Emulated, CudaNetworks, testing::ValuesIn(kPlaces),
                         [](const auto &info) { return info.param.name; });
