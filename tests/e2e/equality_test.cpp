// The result depends only on the target: not on the number of threads, fusion, or the run. It depends on the rows, not
// on the capacity.
#include "tests/e2e/Harness.h"
#include "tests/e2e/Portable.h"
#include <gtest/gtest.h>
#include <regex>

using namespace sluice::test;

namespace {

/// The training data of a model.
struct Feed {
  int64_t rows, pixels;
};
constexpr Feed kDigits{64, 784}, kColourImages{16, 3 * 32 * 32};

Values images(const std::string &key, int64_t rows, int64_t pixels) {
  std::vector<int64_t> image = portableIntegers(key, rows * pixels, 256),
                       label = portableIntegers(key + "/y", rows, 10);
  return {{"image", {image.begin(), image.end()}}, {"label", {label.begin(), label.end()}}};
}

/// All states after three steps; the last step is short.
std::vector<std::byte> trained(const std::string &text, const sluice::CompileOptions &options, int threads,
                               Feed feed = kDigits, const sluice::passes::PipelineInputs &inputs = {}) {
  Compiled model(text, options, {.threads = threads}, inputs);
  model.init(7);
  for (int64_t rows : {feed.rows, feed.rows, feed.rows / 2 + 5})
    model.run("train_step", images("batch" + std::to_string(rows), rows, feed.pixels), rows);
  return model.stateBytes();
}

/// Converts an f32 model, including its parameters, to another float type.
std::string inHalves(const std::string &text, const std::string &element) {
  return std::regex_replace(text, std::regex("([<x]|to = )f32"), "$1" + element);
}

/// A depthwise convolution and pools of images, alone and with consumers.
struct Windows {
  int64_t channels, height, width, stride;

  static constexpr int64_t kRows = 3;

  std::string image(int64_t h, int64_t w, const std::string &element = "f32") const {
    return "tensor<?x" + std::to_string(channels) + "x" + std::to_string(h) + "x" + std::to_string(w) + "x" + element +
           ">";
  }

  std::string text(bool isOnAccelerator) const {
    std::string step = std::to_string(stride), weights = "tensor<" + std::to_string(channels) + "x1x3x3xf32>";
    int64_t h = (height - 1) / stride + 1, w = (width - 1) / stride + 1;
    std::string x = image(height, width), y = image(h, w), two = "(" + y + ", " + y + ") -> " + y;
    std::string place = "stride = array<i64: " + step + ", " + step + ">, padding = array<i64: 1, 1, 1, 1>";
    std::string kernel = "{kernel = array<i64: 3, 3>, " + place, dilation = ", dilation = array<i64: 1, 1>";
    return std::string("module {\n  sluice.model \"windows\" format 2 phase \"train\" capacity 3 copies insert\n") +
           (isOnAccelerator ? "  sluice.device \"cpu\" = \"cpu\" 0\n  sluice.device \"acc0\" = \"sim\" 0 first\n"
                            : "") +
           "  sluice.entry @predict [\"x\", \"w\"] -> [\"conv\", \"max\", \"all\"] (%x: " + x + ", %w: " + weights +
           ") {\n    %c = sluice.conv2d %x, %w {" + place + dilation + ", groups = " + std::to_string(channels) +
           " : i64} : (" + x + ", " + weights + ") -> " + y + "\n    %r = sluice.relu %c : (" + y + ") -> " + y +
           "\n    %a = sluice.avg_pool2d %x " + kernel + "} : (" + x + ") -> " + y +
           "\n    %m, %p = sluice.max_pool2d %x " + kernel + dilation + "} : (" + x + ") -> (" + y + ", " +
           image(h, w, "ui8") + ")\n    %s = sluice.add %r, %a : " + two + "\n    %t = sluice.mul %s, %m : " + two +
           "\n    sluice.return %c, %m, %t : " + y + ", " + y + ", " + y + "\n  }\n}\n";
  }

  Values run(bool isFused, int threads, bool isOnAccelerator) const {
    auto numbers = [](const std::string &key, int64_t count) {
      std::vector<float> drawn = portableUniform(key, size_t(count), -1, 1);
      return std::vector<double>(drawn.begin(), drawn.end());
    };
    sluice::CompileOptions options;
    options.fuse = isFused;
    sluice::passes::PipelineInputs inputs;
    inputs.compileFrom = "train";
    Compiled model(text(isOnAccelerator), options, {.threads = threads}, inputs);
    return model.run(
        "predict", {{"x", numbers("x", kRows * channels * height * width)}, {"w", numbers("w", channels * 9)}}, kRows);
  }
};

} // namespace

// Loops over windows are split at the borders of images, and among tasks: narrow and wide images, with few and with
// many channels.
TEST(Equality, SameBitsOfWindows) {
  constexpr int64_t kChannels[] = {1, 2, 3, 5, 7, 8, 13, 16, 17, 24, 31, 64, 65};
  std::vector<Windows> all{{1, 300, 299, 1}, {16, 70, 69, 1}, {40, 3, 130, 2}, {5, 1, 1, 1}, {17, 2, 2, 1}};
  for (int64_t channels : kChannels)
    all.push_back({channels, 9, 11, 1 + channels % 2});
  for (const Windows &windows : all) {
    SCOPED_TRACE(windows.text(false));
    Values fused = windows.run(true, 1, false);
    EXPECT_GT(fused.at("all").size(), 0u);
    EXPECT_EQ(fused, windows.run(true, 2, false));
    EXPECT_EQ(fused, windows.run(false, 2, false));
    EXPECT_EQ(fused, windows.run(true, 2, true));
  }
}

// Depthwise convolutions, and products that widen with the channels.
TEST(Equality, SameBitsForADepthwiseNetwork) {
  std::string text = modelText("mobilenetv2", "--batch 16 --size 32");
  sluice::CompileOptions unfused;
  unfused.fuse = false;
  std::vector<std::byte> one = trained(text, {}, 1, kColourImages);
  EXPECT_EQ(one, trained(text, {}, 2, kColourImages));
  EXPECT_EQ(one, trained(text, unfused, 2, kColourImages));
  EXPECT_EQ(one, trained(modelText("mobilenetv2", "--batch 16 --size 32 --devices sim:0"), {}, 2, kColourImages));
}

TEST(Equality, SameBitsOnAnyNumberOfThreads) {
  std::string text = modelText("lenet", "--batch 64");
  std::vector<std::byte> one = trained(text, {}, 1);
  EXPECT_EQ(one, trained(text, {}, 2));
  EXPECT_EQ(one, trained(text, {}, 4));
  EXPECT_EQ(one, trained(text, {}, 2));
}

TEST(Equality, FusedEqualsUnfused) {
  std::string text = modelText("lenet", "--batch 64");
  sluice::CompileOptions unfused;
  unfused.fuse = false;
  EXPECT_EQ(trained(text, {}, 2), trained(text, unfused, 2));
}

// Values between ops of one kernel are rounded in the same way as between kernels.
TEST(Equality, SameBitsInHalves) {
  sluice::CompileOptions unfused;
  unfused.fuse = false;
  for (const char *element : {"f16", "bf16"}) {
    SCOPED_TRACE(element);
    std::string text = inHalves(modelText("lenet", "--batch 64"), element);
    std::vector<std::byte> one = trained(text, {}, 1);
    EXPECT_EQ(one, trained(text, {}, 2));
    EXPECT_EQ(one, trained(text, {}, 4));
    EXPECT_EQ(one, trained(text, unfused, 2));
  }
  std::string residual = inHalves(modelText("resnet56", "--batch 16"), "bf16");
  EXPECT_EQ(trained(residual, {}, 1, kColourImages), trained(residual, unfused, 2, kColourImages));
}

// Batch norm sums over rows and pixels, and shortcuts join separately computed values.
TEST(Equality, SameBitsForAResidualNetwork) {
  std::string text = modelText("resnet56", "--batch 16");
  sluice::CompileOptions unfused;
  unfused.fuse = false;
  EXPECT_EQ(trained(text, {}, 1, kColourImages), trained(text, unfused, 2, kColourImages));
}

TEST(Equality, ReusedMemoryChangesNothing) {
  std::string text = modelText("lenet", "--batch 64");
  sluice::passes::PipelineInputs spread;
  spread.reuseMemory = false;
  EXPECT_EQ(trained(text, {}, 2), trained(text, {}, 2, kDigits, spread));
}

// A batch of 37 rows with a capacity of 64 has the interpreter's result; the interpreter has no capacity.
TEST(Equality, AShortBatchIsWeightedByItsRows) {
  std::string text = modelText("lenet", "--batch 64");
  sluice::CompileOptions f64;
  f64.dtype = sluice::f64;
  Compiled model(text, f64);
  Interpreted reference(text, "train", f64);
  model.init(3);
  for (auto &[name, value] : reference.states)
    value.data = model.state(name);
  Values batch = images("short", 5, kDigits.pixels);
  for (const char *entry : {"train_step", "eval_step", "predict"}) {
    Values actual = model.run(entry, batch, 5), expected = reference.run(entry, batch, 5);
    for (auto &[name, value] : expected)
      for (size_t i = 0; i < value.size(); ++i)
        EXPECT_NEAR(actual.at(name)[i], value[i], 1e-12) << entry << " " << name << " " << i;
  }
  for (auto &[name, value] : reference.states) {
    std::vector<double> actual = model.state(name);
    for (size_t i = 0; i < value.data.size(); ++i)
      ASSERT_NEAR(actual[i], value.data[i], 1e-12) << name << " " << i;
  }
}
