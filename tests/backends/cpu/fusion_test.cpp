// Fused kernels give the same bits as their ops run separately.
#include "tests/backends/cpu/KernelRun.h"

#include <gtest/gtest.h>

namespace sluice::cpu::testing {
namespace {

constexpr const char *kAliases = "#nhwc = #sluice.at<layout = affine_map<(d0, d1, d2, d3) -> (d0, d2, d3, d1)>>\n";

// The bias gradient of a large activation: a sum over chunks, which also stores the gradient.
class BiasGradient : public ::testing::Test {
protected:
  const std::string x = "tensor<?x20x26x26xf32, #nhwc>", b = "tensor<20xf32>";
  const std::string mask =
      "%z = sluice.full {value = 0.0 : f64, type = " + x + "} : () -> " + x +
      "\n%m = sluice.compare %0, %z {predicate = #sluice<predicate gt>} : (" + x + ", " + x +
      ") -> tensor<?x20x26x26xi1, #nhwc>\n%g = sluice.where %m, %1, %z : (tensor<?x20x26x26xi1, #nhwc>, " + x + ", " +
      x + ") -> " + x + "\n";
  static std::string sumOf(const std::string &value, const std::string &x, const std::string &b) {
    return "%s = sluice.sum " + value + " {axes = array<i64: 0, 2, 3>} : (" + x + ") -> " + b;
  }
};

TEST_F(BiasGradient, HasTheSameBitsFusedAndNot) {
  KernelRun fused({x, x}, mask + sumOf("%g", x, b), "%g, %s : " + x + ", " + b, 9, kAliases);
  KernelRun only({x, x}, mask + sumOf("%g", x, b), "%s : " + b, 9, kAliases);
  KernelRun first({x, x}, mask, "%g : " + x, 9, kAliases), second({x}, sumOf("%0", x, b), "%s : " + b, 9, kAliases);
  for (KernelRun *kernel : {&fused, &only, &first, &second})
    ASSERT_TRUE(kernel->lowered()) << kernel->diagnostics();
  EXPECT_EQ(fused.result().stages.size(), 2u) << "the gradient is not stored while it is summed";
  EXPECT_GT(fused.result().workspaceBytes, 0);
  for (KernelRun *kernel : {&fused, &only, &first})
    kernel->randomize(-1, 1);
  for (int64_t rows : {9, 4, 1}) {
    fused.run(rows, 3);
    only.run(rows);
    first.run(rows, 4);
    second.inputs = {first.output(0)};
    second.inputs[0].shape[0] = 9;
    second.inputs[0].data.resize(9 * 20 * 26 * 26);
    second.run(rows, 5);
    EXPECT_LE(fused.error(), 1e-4);
    EXPECT_EQ(fused.output(1).data, only.output(0).data);
    EXPECT_EQ(fused.output(1).data, second.output(0).data);
    EXPECT_EQ(fused.output(0).data, first.output(0).data);
  }
}

// Tests that a value in NCHW sums to the same bits as in NHWC, with other loops.
TEST_F(BiasGradient, HasTheSameBitsInOtherLayouts) {
  std::string plain = "tensor<?x20x26x26xf32>";
  KernelRun nhwc({x}, sumOf("%0", x, b), "%s : " + b, 9, kAliases),
      nchw({plain}, sumOf("%0", plain, b), "%s : " + b, 9);
  ASSERT_TRUE(nhwc.lowered() && nchw.lowered()) << nhwc.diagnostics() << nchw.diagnostics();
  nhwc.randomize(-1, 1);
  nchw.inputs = nhwc.inputs;
  nhwc.run(8);
  nchw.run(8);
  EXPECT_LE(nhwc.error(), 1e-4);
  EXPECT_EQ(nhwc.output(0).data, nchw.output(0).data);
}

// Tests a mean and a variance that depends on it: two split reductions, the first's value in the workspace.
TEST(Fusion, ComputesBatchStatistics) {
  std::string x = "tensor<?x20x26x26xf32, #nhwc>", b = "tensor<20xf32>";
  KernelRun kernel({x},
                   "%m = sluice.mean %0 {axes = array<i64: 0, 2, 3>} : (" + x + ") -> " + b +
                       "\n%e = sluice.expand %m {dims = array<i64: 1>, shape = array<i64: ?, 20, 26, 26>} : (" + b +
                       ") -> " + x + "\n%d = sluice.sub %0, %e : (" + x + ", " + x + ") -> " + x +
                       "\n%q = sluice.square %d : (" + x + ") -> " + x +
                       "\n%v = sluice.mean %q {axes = array<i64: 0, 2, 3>} : (" + x + ") -> " + b,
                   "%v, %m, %d : " + b + ", " + b + ", " + x, 9, kAliases);
  ASSERT_TRUE(kernel.lowered()) << kernel.diagnostics();
  kernel.randomize(-1, 1);
  for (int64_t rows : {9, 2}) {
    kernel.run(rows, 7);
    EXPECT_LE(kernel.error(), 1e-5);
  }
}

// Tests that a large scalar sum is split into chunks, over rows and over static dimensions.
TEST(Fusion, SumsToScalars) {
  KernelRun rows({"tensor<?x3000xf32>"},
                 "%s = sluice.mean %0 {axes = array<i64: 0, 1>} : (tensor<?x3000xf32>) -> tensor<f32>",
                 "%s : tensor<f32>", 64);
  KernelRun fixed({"tensor<1x300000xf64>"},
                  "%s = sluice.sum %0 {axes = array<i64: 0, 1>} : (tensor<1x300000xf64>) -> tensor<f64>",
                  "%s : tensor<f64>", 64);
  for (KernelRun *kernel : {&rows, &fixed}) {
    ASSERT_TRUE(kernel->lowered()) << kernel->diagnostics();
    EXPECT_EQ(kernel->result().stages.size(), 2u);
    kernel->randomize(-1, 1);
    kernel->run(33, 9);
    EXPECT_LE(kernel->error(), 1e-6);
  }
}

// Tests that softmax gives the same bits with other consumers, with 64-bit integers in the kernel, and alone.
TEST(Fusion, SoftmaxKeepsItsBits) {
  std::string x = "tensor<?x37xf32>";
  std::string softmax = "%a = sluice.softmax %0 {axis = 1 : i64} : (" + x + ") -> " + x + "\n";
  KernelRun alone({x}, softmax, "%a : " + x, 9);
  KernelRun beside({x},
                   softmax + "%i = sluice.argmax %a {axis = 1 : i64} : (" + x +
                       ") -> tensor<?xi32>\n%j = sluice.cast %i {to = i64} : (tensor<?xi32>) -> tensor<?xi64>\n" +
                       "%r = sluice.relu %a : (" + x + ") -> " + x,
                   "%j, %r : tensor<?xi64>, " + x, 9);
  ASSERT_TRUE(alone.lowered() && beside.lowered()) << alone.diagnostics() << beside.diagnostics();
  alone.randomize(-3, 3);
  beside.randomize(-3, 3);
  alone.run(9);
  beside.run(9, 2);
  EXPECT_LE(beside.error(), 1e-6);
  EXPECT_EQ(alone.output(0).data, beside.output(1).data);
}

// Tests that one task computes a row of a softmax, however long it is: several tasks would repeat the folds.
TEST(Fusion, LongRowsAreFoldedOnce) {
  std::string x = "tensor<?x50257xf32>";
  KernelRun kernel({x}, "%a = sluice.softmax %0 {axis = 1 : i64} : (" + x + ") -> " + x, "%a : " + x, 128);
  ASSERT_TRUE(kernel.lowered()) << kernel.diagnostics();
  ASSERT_EQ(kernel.result().stages.size(), 1u);
  EXPECT_EQ(kernel.result().stages[0].tasks, 1);
  EXPECT_EQ(kernel.result().stages[0].rowsPerTask, 1);
}

} // namespace
} // namespace sluice::cpu::testing
