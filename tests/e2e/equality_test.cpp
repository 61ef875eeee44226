// One target gives one result: on any number of threads, fused or not, run after run; and rows count, not capacity.
#include "tests/e2e/Harness.h"
#include "tests/e2e/Portable.h"
#include <gtest/gtest.h>

using namespace sluice::test;

namespace {

Values digits(const std::string &key, int64_t rows) {
  std::vector<int64_t> pixels = portableIntegers(key, rows * 784, 256), labels = portableIntegers(key + "/y", rows, 10);
  return {{"image", {pixels.begin(), pixels.end()}}, {"label", {labels.begin(), labels.end()}}};
}

/// All states after three steps, the last one short.
std::vector<std::byte> trained(const std::string &text, const sluice::passes::PipelineOptions &options, int threads) {
  Compiled model(text, options, {.threads = threads});
  model.init(7);
  for (int64_t rows : {64, 64, 37})
    model.run("train_step", digits("batch" + std::to_string(rows), rows), rows);
  return model.stateBytes();
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
  sluice::passes::PipelineOptions unfused;
  unfused.fuse = false;
  EXPECT_EQ(trained(text, {}, 2), trained(text, unfused, 2));
}

TEST(Equality, ReusedMemoryChangesNothing) {
  std::string text = modelText("lenet", "--batch 64");
  sluice::passes::PipelineOptions spread;
  spread.reuseMemory = false;
  EXPECT_EQ(trained(text, {}, 2), trained(text, spread, 2));
}

// A batch of 37 rows in a capacity of 64 means what the interpreter, which knows no capacity, says it means.
TEST(Equality, AShortBatchIsWeightedByItsRows) {
  std::string text = modelText("lenet", "--batch 64");
  sluice::passes::PipelineOptions f64;
  f64.promoteF64 = true;
  Compiled model(text, f64);
  Interpreted reference(text, "train", f64);
  model.init(3);
  for (auto &[name, value] : reference.states)
    value.data = model.state(name);
  Values batch = digits("short", 5);
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
