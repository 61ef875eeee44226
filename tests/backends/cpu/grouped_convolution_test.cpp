// Convolutions in groups and both their gradients: generated code against the reference functions. Depthwise
// convolutions and their input gradients have a generator, the others are loop nests.
#include "tests/backends/cpu/KernelRun.h"

#include <algorithm>
#include <array>
#include <gtest/gtest.h>

namespace sluice::cpu::testing {
namespace {

// A convolution of `channels` in groups, and its gradients, NHWC and row-major.
struct Grouped {
  int64_t channels, outputs, groups, kernel = 3, stride = 1, padding = 1, dilation = 1;
  std::string layout = ", #nhwc";
  int64_t height = 8, width = 8;
  std::string element = "f32";

  int64_t windows(int64_t size) const { return (size + 2 * padding - dilation * (kernel - 1) - 1) / stride + 1; }
  std::string type(std::initializer_list<int64_t> sizes, const std::string &layout) const {
    std::string text = "tensor<";
    for (int64_t size : sizes)
      text += (size < 0 ? "?" : std::to_string(size)) + "x";
    return text + element + layout + ">";
  }
  std::string x() const { return type({-1, channels, height, width}, layout); }
  std::string w() const {
    return type({outputs, channels / groups, kernel, kernel}, layout.empty() ? "" : ", #columns");
  }
  std::string y() const { return type({-1, outputs, windows(height), windows(width)}, layout); }
  std::string attributes(const std::string &more = "") const {
    auto pair = [](int64_t n) { return "array<i64: " + std::to_string(n) + ", " + std::to_string(n) + ">"; };
    std::string pads = std::to_string(padding);
    return " {" + more + "stride = " + pair(stride) + ", dilation = " + pair(dilation) +
           ", padding = array<i64: " + pads + ", " + pads + ", " + pads + ", " + pads +
           ">, groups = " + std::to_string(groups) + " : i64} : (";
  }
  static std::string sized(int64_t height, int64_t width) {
    return "size = array<i64: " + std::to_string(height) + ", " + std::to_string(width) + ">, ";
  }
  std::string forward() const { return "%a = sluice.conv2d %0, %1" + attributes() + x() + ", " + w() + ") -> " + y(); }
  std::string inputGradient() const {
    return "%a = sluice.conv2d_input_grad %0, %1" + attributes(sized(height, width)) + y() + ", " + w() + ") -> " + x();
  }
  std::string weightGradient() const {
    return "%a = sluice.conv2d_weight_grad %0, %1" + attributes(sized(kernel, kernel)) + x() + ", " + y() + ") -> " +
           w();
  }
  // Operands, body and result of each pass.
  std::vector<std::array<std::string, 4>> passes() const {
    return {{x(), w(), forward(), y()}, {y(), w(), inputGradient(), x()}, {x(), y(), weightGradient(), w()}};
  }
};

constexpr const char *kColumns = "#nhwc = #sluice.at<layout = affine_map<(d0, d1, d2, d3) -> (d0, d2, d3, d1)>>\n"
                                 "#columns = #sluice.at<layout = affine_map<(d0, d1, d2, d3) -> (d2, d3, d1, d0)>>\n";

TEST(GroupedConvolution, AgreesWithTheReference) {
  for (Grouped shape :
       {Grouped{32, 32, 32}, Grouped{.channels = 144, .outputs = 144, .groups = 144, .height = 16, .width = 16},
        Grouped{20, 20, 20, 3, 2, 1, 1}, Grouped{6, 12, 6, 2, 1, 0, 2}, Grouped{8, 24, 2, 3, 2, 2, 2},
        Grouped{12, 12, 3, 1, 1, 0, 1}, Grouped{6, 12, 3, 3, 1, 1, 1, ""}, Grouped{4, 8, 4, 3, 3, 1, 1, ""},
        Grouped{.channels = 9, .outputs = 3, .groups = 3, .stride = 2, .padding = 3, .height = 7, .width = 6}})
    for (auto &[first, second, body, result] : shape.passes()) {
      KernelRun kernel({first, second}, body, "%a : " + result, 7, kColumns);
      ASSERT_TRUE(kernel.lowered()) << kernel.diagnostics();
      kernel.randomize(-1, 1);
      for (int64_t rows : {7, 3, 1, 0}) {
        kernel.run(rows);
        EXPECT_LE(kernel.error(), 2e-5) << body << " with " << rows << " rows";
      }
    }
}

// Tests depthwise tiles of all kinds: channels that end within a vector, taps that lie outside of the image for whole
// tiles, one pixel in a row, more taps than registers, and pixels that no tap of the input gradient reaches.
TEST(GroupedConvolution, DepthwiseAgreesWithTheReference) {
  for (Grouped shape :
       {Grouped{2, 2, 2}, Grouped{3, 3, 3, 3, 1, 1, 1}, Grouped{17, 17, 17, 5, 1, 2}, Grouped{88, 88, 88, 5, 1, 2, 1},
        Grouped{.channels = 29, .outputs = 29, .groups = 29, .kernel = 5, .stride = 2, .padding = 2, .width = 31},
        Grouped{40, 40, 40, 3, 2, 4, 2}, Grouped{24, 24, 24, 2, 3, 0, 1}, Grouped{16, 16, 16, 1, 1, 0, 1},
        Grouped{.channels = 50, .outputs = 50, .groups = 50, .height = 40, .width = 1},
        Grouped{.channels = 8, .outputs = 8, .groups = 8, .kernel = 21, .padding = 10, .height = 5, .width = 30}}) {
    auto passes = shape.passes();
    passes.pop_back(); // weight gradients are loop nests
    for (auto &[first, second, body, result] : passes) {
      KernelRun kernel({first, second}, body, "%a : " + result, 7, kColumns);
      ASSERT_TRUE(kernel.lowered()) << kernel.diagnostics();
      kernel.randomize(-1, 1);
      for (int64_t rows : {7, 1, 0}) {
        kernel.run(rows);
        EXPECT_LE(kernel.error(), 2e-5) << body << " with " << rows << " rows";
        auto inOrder = kernel.bytes(0);
        kernel.run(rows, /*seed=*/3);
        EXPECT_TRUE(kernel.bytes(0) == inOrder) << body << ": other bits in another order";
      }
    }
  }
}

// Tests depthwise products of halves, which are summed in f32 and rounded once.
TEST(GroupedConvolution, DepthwiseOfHalvesAgreesWithTheReference) {
  for (std::string element : {"f16", "bf16"})
    for (size_t pass : {0, 1}) {
      Grouped shape{.channels = 20, .outputs = 20, .groups = 20, .element = element};
      auto [first, second, body, result] = shape.passes()[pass];
      KernelRun kernel({first, second}, body, "%a : " + result, 7, kColumns);
      ASSERT_TRUE(kernel.lowered()) << kernel.diagnostics();
      kernel.randomize(-1, 1);
      kernel.run(3);
      EXPECT_LE(kernel.error(), element == "f16" ? 0x1p-10 : 0x1p-7) << body; // the rounding of the result, doubled
    }
}

// Tests that depthwise sums have one order on all targets.
TEST(GroupedConvolution, DepthwiseHasTheSameBitsOnAllTargets) {
  if (!Target::host().has("avx512f"))
    GTEST_SKIP() << "the host has one instruction set";
  for (Grouped shape : {Grouped{88, 88, 88, 5, 1, 2, 1}, Grouped{20, 20, 20, 3, 2, 1, 1}})
    for (size_t pass : {0, 1}) {
      auto [first, second, body, result] = shape.passes()[pass];
      auto bytesOn = [&](const Target &target) {
        KernelRun kernel({first, second}, body, "%a : " + result, 7, kColumns, target);
        kernel.randomize(-1, 1);
        kernel.run(7);
        return kernel.bytes(0);
      };
      EXPECT_TRUE(bytesOn(Target::host()) == bytesOn(llvm::cantFail(Target::of("haswell")))) << body;
    }
}

// Tests that batch 1 is cut into tasks for several threads.
TEST(GroupedConvolution, OneImageIsSeveralTasks) {
  Grouped shape{.channels = 96, .outputs = 96, .groups = 96, .height = 56, .width = 56};
  auto [first, second, body, result] = shape.passes()[0];
  KernelRun kernel({first, second}, body, "%a : " + result, 1, kColumns);
  ASSERT_TRUE(kernel.lowered()) << kernel.diagnostics();
  EXPECT_GE(kernel.result().stages.back().tasks, 8);
}

// Tests that a kernel's code does not grow with its groups, in any pass.
TEST(GroupedConvolution, CodeDoesNotGrowWithGroups) {
  for (size_t pass : {0, 1, 2}) {
    size_t lines[2];
    for (int64_t channels : {32, 256}) {
      auto [first, second, body, result] = Grouped{channels, channels, channels}.passes()[pass];
      KernelRun kernel({first, second}, body, "%a : " + result, 7, kColumns);
      ASSERT_TRUE(kernel.lowered()) << kernel.diagnostics();
      std::string assembly = kernel.assembly();
      lines[channels == 256] = std::count(assembly.begin(), assembly.end(), '\n');
    }
    EXPECT_LE(lines[1], 1.25 * lines[0]) << "in pass " << pass;
  }
}

// Tests that long rows of taps are loops: they are unrolled for each border.
TEST(GroupedConvolution, CodeDoesNotGrowWithTaps) {
  size_t lines[2];
  for (int64_t taps : {33, 255}) {
    std::string x = "tensor<?x16x1x512xf32, #nhwc>", w = "tensor<16x1x1x" + std::to_string(taps) + "xf32, #columns>";
    std::string pads = std::to_string(taps / 2);
    std::string body = "%a = sluice.conv2d %0, %1 {stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, padding = "
                       "array<i64: 0, " +
                       pads + ", 0, " + pads + ">, groups = 16 : i64} : (" + x + ", " + w + ") -> " + x;
    KernelRun kernel({x, w}, body, "%a : " + x, 7, kColumns);
    ASSERT_TRUE(kernel.lowered()) << kernel.diagnostics();
    std::string assembly = kernel.assembly();
    lines[taps == 255] = std::count(assembly.begin(), assembly.end(), '\n');
  }
  EXPECT_LE(lines[1], 2 * lines[0]); // unrolled: 100 times
}

} // namespace
} // namespace sluice::cpu::testing
