// One training step of the benchmarks' networks on an emulated CUDA device. It must agree with the interpreter in f64
// as closely as f32 on the host. Networks with many weights are reduced; residual networks run with SLUICE_TEST_FULL=1.
// For the language models see golden_devices_test.cpp.
#include "tests/cuda_emu/Doubles.h"
#include "tests/e2e/Portable.h"
#include "tests/e2e/Yardstick.h"
#include "tests/e2e/devices/Placed.h"
#include <gtest/gtest.h>
#include <utility>

using namespace sluice::test;

namespace {

/// A program of models/ with some numbers in its text replaced.
struct SmallModel {
  std::string program, arguments;
  int64_t rows, features, classes;
  std::vector<std::pair<std::string, std::string>> numbers = {};
  bool isLong = false;

  std::string textFor(const std::string &devices) const {
    std::string text =
        modelText(program, "--input f32 --batch " + std::to_string(rows) + " --devices " + devices + " " + arguments);
    for (const auto &[own, other] : numbers)
      text = replaced(text, own, other);
    return text;
  }
  Values batch() const {
    std::vector<float> image = portableUniform(program + "/image", size_t(rows * features), -1, 1);
    std::vector<int64_t> labels = portableIntegers(program + "/label", size_t(rows), uint64_t(classes));
    return {{"image", {image.begin(), image.end()}}, {"label", {labels.begin(), labels.end()}}};
  }
};
const SmallModel kModels[] = {
    {"fcn_s", "", 4, 52, 52, {{"26752", "52"}, {"2048", "24"}}},
    {"fcn_r", "", 4, 36, 10, {{"784", "36"}, {"2048", "16"}, {"4096", "24"}, {"1024", "12"}}},
    {"alexnet_s",
     "--init torch",
     1,
     3 * 224 * 224,
     10,
     {{"4096", "24"},
      {"9216", "288"},
      {"x96x", "x4x"},
      {"<96x", "<4x"},
      {", 96, ", ", 4, "},
      {"256", "8"},
      {"384", "12"},
      {"1000", "10"}}},
    {"alexnet_r", "--init torch", 1, 3 * 32 * 32, 10},
    {"resnet56", "", 2, 3 * 32 * 32, 10, {}, /*isLong=*/true},
    {"resnet50", "--size 32", 8, 3 * 32 * 32, 1000, {}, /*isLong=*/true},
};

class CudaModels : public testing::TestWithParam<SmallModel> {};

} // namespace

TEST_P(CudaModels, TakeAStepAsTheInterpreter) {
  const SmallModel &model = GetParam();
  if (model.isLong && !runsAll())
    GTEST_SKIP() << "hundreds of kernels: only with SLUICE_TEST_FULL=1";
  setenv("CUDA_EMU_EFFORT", "least", /*overwrite=*/1); // each kernel runs once
  useCudaDoubles(/*devices=*/1, /*seed=*/3);
  Yardstick yardstick(model.textFor("cpu"), {model.rows}, [&](int, int64_t) { return model.batch(); });
  Compiled compiled(model.textFor("cuda:0"));
  yardstick.expectWithin(yardstick.train(compiled));
}

INSTANTIATE_TEST_SUITE_P(Emulated, CudaModels, testing::ValuesIn(kModels),
                         [](const auto &info) { return info.param.program; });
