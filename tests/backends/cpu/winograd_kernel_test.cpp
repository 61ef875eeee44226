// Kernels around convolutions by Winograd's algorithm: operands and epilogues, against the reference functions.
#include "backends/cpu/compiler/product/Contraction.h"
#include "backends/cpu/compiler/product/window/WinogradTransform.h"
#include "tests/backends/cpu/KernelRun.h"

#include <gtest/gtest.h>

namespace sluice::cpu::testing {
namespace {

constexpr int64_t kChannels = 64, kCapacity = 7;

/// The largest error of a sum over `channels` channels of operands in [-1, 1]: see winograd_test.cpp.
double boundOf(int64_t channels) {
  const WinogradTransforms &its = winogradTransforms(4);
  auto sumOfRow = [](const TransformMatrix &m, int64_t row) {
    double sum = 0;
    for (int64_t j = 0; j < m.columns; ++j)
      sum += std::abs(m.at(row, j));
    return sum;
  };
  double largest = 0;
  for (int64_t i = 0; i < its.outputs(); ++i) {
    double along = 0; // of one dimension: the transforms are the same along the other
    for (int64_t k = 0; k < its.size(); ++k)
      along += std::abs(its.output.at(i, k)) * sumOfRow(its.image, k) * sumOfRow(its.filter, k);
    largest = std::max(largest, along);
  }
  return double(26 + channels) * 0x1p-24 * double(channels) * largest * largest;
}

class WinogradKernels : public ::testing::TestWithParam<std::tuple<std::string, int64_t>> {
protected:
  WinogradKernels() {
    target.fastMath = true;
    if (bits < target.vectorBits) {
      target.vectorBits = bits;
      target.numVectorRegisters = 16;
    }
  }

  std::string tensor(const std::string &shape, const std::string &layout = "") const {
    return "tensor<" + shape + (shape.empty() ? "" : "x") + element + (layout.empty() ? "" : ", #" + layout) + ">";
  }
  std::string aliases() const {
    std::string panel = std::to_string(panelWidth(kChannels, 32, target));
    return "#nhwc = #sluice.at<layout = affine_map<(d0, d1, d2, d3) -> (d0, d2, d3, d1)>>\n"
           "#filter = #sluice.at<layout = affine_map<(d0, d1, d2, d3) -> (d0 floordiv " +
           panel + ", d2, d3, d1, d0 mod " + panel + ")>>\n";
  }
  /// "%name = op %from : types", of values of `type`.
  static std::string line(const std::string &name, const std::string &op, const std::string &from,
                          const std::string &type, bool isBinary = true) {
    return "%" + name + " = sluice." + op + " " + from + " : (" + (isBinary ? type + ", " : "") + type + ") -> " +
           type + "\n";
  }

  void expectRuns(KernelRun &kernel) {
    ASSERT_TRUE(kernel.lowered()) << kernel.diagnostics();
    EXPECT_TRUE(llvm::StringRef(kernel.result().stages.back().function).ends_with("_winograd"));
    EXPECT_EQ(kernel.described().workspaceBytes, kernel.result().workspaceBytes);
    kernel.randomize(-1, 1);
    // Results of up to 32 are rounded by each op.
    double rounding = element == "f16" ? 0x1p-11 : element == "bf16" ? 0x1p-8 : 0x1p-24;
    for (int64_t rows : {7, 2, 1}) {
      kernel.run(rows);
      EXPECT_LE(kernel.error(), boundOf(kChannels) + 32 * 4 * rounding) << "with " << rows << " rows";
      auto inOrder = kernel.bytes(0);
      kernel.run(rows, /*seed=*/3);
      EXPECT_TRUE(kernel.bytes(0) == inOrder) << "other bits in another order";
    }
  }

  std::string element = std::get<0>(GetParam());
  int64_t bits = std::get<1>(GetParam());
  Target target = Target::host();
  const std::string window =
      "stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>, groups = 1 : i64, padding = array<i64: 1, 1, 1, 1>";
};

TEST_P(WinogradKernels, ConvolveWithNormResidualAndRelu) {
  std::string x = tensor("?x64x14x13", "nhwc"), w = tensor("64x64x3x3", "filter"), channels = tensor("64");
  auto expand = [&](const std::string &name, const std::string &from) {
    return "%" + name + " = sluice.expand %" + from + " {dims = array<i64: 1>, shape = array<i64: ?, 64, 14, 13>} : (" +
           channels + ") -> " + x + "\n";
  };
  KernelRun kernel({x, w, channels, channels, x},
                   "%a = sluice.conv2d %0, %1 {" + window + "} : (" + x + ", " + w + ") -> " + x + "\n" +
                       expand("s", "2") + expand("t", "3") + line("b", "mul", "%a, %s", x) +
                       line("c", "add", "%b, %t", x) + line("d", "add", "%c, %4", x) +
                       line("e", "relu", "%d", x, /*isBinary=*/false),
                   "%e, %a : " + x + ", " + x, kCapacity, aliases(), target);
  expectRuns(kernel);
}

TEST_P(WinogradKernels, MakeInputGradients) {
  std::string x = tensor("?x64x14x13", "nhwc"), w = tensor("64x64x3x3", "filter");
  KernelRun kernel({x, w, x},
                   "%a = sluice.conv2d_input_grad %0, %1 {size = array<i64: 14, 13>, " + window + "} : (" + x + ", " +
                       w + ") -> " + x + "\n" + line("b", "mul", "%a, %2", x),
                   "%b, %a : " + x + ", " + x, kCapacity, aliases(), target);
  expectRuns(kernel);
}

// The number of images is constant.
TEST_P(WinogradKernels, ConvolveOneImage) {
  std::string x = tensor("1x64x28x28", "nhwc"), w = tensor("64x64x3x3", "filter");
  KernelRun kernel({x, w}, "%a = sluice.conv2d %0, %1 {" + window + "} : (" + x + ", " + w + ") -> " + x, "%a : " + x,
                   kCapacity, aliases(), target);
  expectRuns(kernel);
}

INSTANTIATE_TEST_SUITE_P(Elements, WinogradKernels,
                         ::testing::Combine(::testing::Values("f32", "f16", "bf16"),
                                            ::testing::Values(int64_t(512), int64_t(256))),
                         [](const auto &info) {
                           return std::get<0>(info.param) + "_" + std::to_string(std::get<1>(info.param));
                         });

} // namespace
} // namespace sluice::cpu::testing
