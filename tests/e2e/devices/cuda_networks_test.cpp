// Networks trained on emulated CUDA devices must agree with the interpreter in f64 as closely as f32 on the host. They
// run on one device, on several, with the host and with a virtual accelerator, with and without CUDA graphs.
#include "tests/cuda_emu/Doubles.h"
#include "tests/e2e/Portable.h"
#include "tests/e2e/Yardstick.h"
#include "tests/e2e/devices/SmallResNet.h"
#include <gtest/gtest.h>

using namespace sluice::test;

namespace {

constexpr int64_t kRows = 16;
constexpr int kSteps = 5;

struct Place {
  const char *name, *network, *devices;

  bool isResNet() const { return std::string(network) == "small_resnet"; }
  std::string textFor(const std::string &which) const {
    return isResNet() ? smallResNet(which, kRows)
                      : modelText(network, "--input f32 --batch 16 --copies insert --devices " + which);
  }
  Values batch(int step, int64_t rows) const {
    std::string key = "devices/step" + std::to_string(step);
    int64_t pixels = isResNet() ? kSmallResNetChannels * kSmallResNetSide * kSmallResNetSide : 28 * 28;
    std::vector<float> image = portableUniform(key, size_t(rows * pixels));
    std::vector<int64_t> labels = portableIntegers(key + "/label", size_t(rows), 10);
    return {{"image", {image.begin(), image.end()}}, {"label", {labels.begin(), labels.end()}}};
  }
};
constexpr Place kPlaces[] = {
    {"LenetOnOne", "lenet", "cuda:0"},
    {"LenetOnTwo", "lenet", "cuda:0,cuda:1 --pin conv=gpu:0 --pin fc=gpu:1"},
    {"LenetOnFour", "lenet",
     "cuda:0,cuda:1,cuda:2,cuda:3 --pin conv1=gpu:0 --pin conv2=gpu:1 --pin fc1=gpu:2 --pin fc2=gpu:3"},
    {"LenetBesideTheHost", "lenet", "cpu,cuda:0 --pin conv=gpu:0"},
    {"LenetOnTwoBesideTheHost", "lenet", "cpu,cuda:0,cuda:1 --pin conv=gpu:0 --pin fc1=gpu:1"},
    {"LenetBesideASimulator", "lenet", "cpu,sim:0,cuda:0 --pin conv1=gpu:0 --pin conv2=gpu:1 --pin fc1=gpu:0"},
    {"MlpOnOne", "mlp", "cuda:0"},
    {"MlpOnTwo", "mlp", "cuda:0,cuda:1 --pin hidden=gpu:0 --pin fc1=gpu:0 --pin fc2=gpu:1 --pin fc3=gpu:1"},
    {"MlpOnFour", "mlp",
     "cuda:0,cuda:1,cuda:2,cuda:3 --pin hidden=gpu:0 --pin fc1=gpu:1 --pin fc2=gpu:2 --pin fc3=gpu:3"},
    {"MlpBesideTheHost", "mlp", "cpu,cuda:0 --pin hidden=gpu:0 --pin fc2=gpu:0"},
    {"ResNetOnOne", "small_resnet", "cuda:0"},
    {"ResNetOnTwo", "small_resnet", "cuda:0,cuda:1"},
    {"ResNetOnFour", "small_resnet", "cuda:0,cuda:1,cuda:2,cuda:3"},
    {"ResNetBesideTheHost", "small_resnet", "cpu,cuda:0"},
};

class CudaNetworks : public testing::TestWithParam<Place> {};

} // namespace

TEST_P(CudaNetworks, TrainAsTheInterpreter) {
  const Place &place = GetParam();
  useCudaDoubles(/*devices=*/4, /*seed=*/int(place.name[0]));
  Yardstick yardstick(place.textFor("cpu"), std::vector<int64_t>(kSteps, kRows),
                      [&](int step, int64_t rows) { return place.batch(step, rows); });
  Compiled model(place.textFor(place.devices));
  yardstick.expectReplaysWithin(model);
}

INSTANTIATE_TEST_SUITE_P(Emulated, CudaNetworks, testing::ValuesIn(kPlaces),
                         [](const auto &info) { return info.param.name; });
