// Every wait in plans of small networks for CUDA devices is needed. Without it, some order of the emulated devices'
// work changes losses or states. The plans use one device, several devices, or devices and the host. Launches of
// repeated calls are replayed as graphs. Some plans delete a sample of the waits, and all waits with
// SLUICE_TEST_FULL=1.
#include "tests/cuda_emu/Doubles.h"
#include "tests/e2e/Portable.h"
#include "tests/e2e/devices/SmallLeNet.h"
#include "tests/e2e/devices/SmallResNet.h"
#include "tests/e2e/devices/WaitDeletion.h"
#include <cstdlib>
#include <gtest/gtest.h>

using namespace sluice::test;

namespace {

constexpr int64_t kBatch = 2;

std::string lenet(const std::string &devices) { return smallLeNet(devices, kBatch); }
std::string resnet(const std::string &devices) { return smallResNet(devices, kBatch); }

/// models/mlp with few features.
std::string mlp(const std::string &devices) {
  std::string text =
      modelText("mlp", "--input f32 --batch " + std::to_string(kBatch) + " --copies insert --devices " + devices);
  return replaced(replaced(replaced(text, "784", "36"), "256", "12"), "128", "8");
}

/// Removes the output of more than one element, which is not read in every call.
std::string withoutLogits(std::string text) {
  size_t begin = text.find("sluice.output \"logits\""), end = text.find('\n', begin);
  return begin == std::string::npos ? text : text.erase(begin, end - begin);
}

struct Placement {
  const char *name;
  std::string (*network)(const std::string &devices);
  const char *devices; ///< devices and pins of a program of models/
  size_t sample;       ///< number of the plan's waits to delete; 0: only a full run, with all waits
};
constexpr Placement kPlacements[] = {
    {"LenetOnOne", lenet, "cuda:0", SIZE_MAX},
    {"LenetOnTwo", lenet, "cuda:0,cuda:1", SIZE_MAX},
    {"LenetOnFour", lenet, "cuda:0,cuda:1,cuda:2,cuda:3", 8},
    {"LenetBesideTheHost", lenet, "cpu,cuda:0,cuda:1", 8},
    {"MlpOnOne", mlp, "cuda:0", SIZE_MAX},
    {"MlpOnTwo", mlp, "cuda:0,cuda:1 --pin fc1=gpu:0 --pin fc2=gpu:1 --pin fc3=gpu:1", SIZE_MAX},
    {"MlpOnFour", mlp, "cuda:0,cuda:1,cuda:2,cuda:3 --pin fc1=gpu:0 --pin fc2=gpu:1 --pin fc3=gpu:2 --pin hidden=gpu:3",
     SIZE_MAX},
    {"MlpBesideTheHost", mlp, "cpu,cuda:0 --pin hidden=gpu:0 --pin fc3=gpu:0", SIZE_MAX},
    {"ResNetOnOne", resnet, "cuda:0", 0},
    {"ResNetOnTwo", resnet, "cuda:0,cuda:1", 3},
    {"ResNetOnFour", resnet, "cuda:0,cuda:1,cuda:2,cuda:3", 0},
    {"ResNetBesideTheHost", resnet, "cpu,cuda:0", 0},
};

class CudaWaits : public testing::TestWithParam<Placement> {};

} // namespace

TEST_P(CudaWaits, NoneCanBeLeftOut) {
  size_t most = std::getenv("SLUICE_TEST_FULL") ? SIZE_MAX : GetParam().sample;
  if (most == 0)
    GTEST_SKIP() << "many kernels in each run: only with SLUICE_TEST_FULL=1";
  setenv("CUDA_EMU_EFFORT", "least", /*overwrite=*/1);
  useCudaDoubles(/*devices=*/4);
  Compiled model(withoutLogits(GetParam().network(GetParam().devices)));
  auto inputs = [&](int call) -> Values {
    const sluice::runtime::Value &image = *model.program().entry("train_step").findInput("image");
    std::string key = "waits/step" + std::to_string(call);
    std::vector<float> pixels = portableUniform(key, size_t(model.program().bytesFor(image, kBatch)) / sizeof(float));
    std::vector<int64_t> labels = portableIntegers(key + "/label", size_t(kBatch), 10);
    return {{"image", {pixels.begin(), pixels.end()}},
            {"label", {labels.begin(), labels.end()}},
            {"key", {double(call), 7}}};
  };
  EXPECT_GT(expectEveryWaitIsNeeded({model, inputs, kBatch, Hostile::EmulatedCuda, most}).bits, 0);
}

INSTANTIATE_TEST_SUITE_P(Emulated, CudaWaits, testing::ValuesIn(kPlacements),
                         [](const auto &info) { return info.param.name; });
