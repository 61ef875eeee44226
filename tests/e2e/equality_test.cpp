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

} // namespace

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
