// Normalisations, products of elements and counts: kernels against the reference functions, whatever the order of tasks.
#include "tests/backends/cpu/KernelRun.h"

#include <gtest/gtest.h>

namespace sluice::cpu::testing {

namespace {

constexpr const char *kNormLayouts =
    "#nhwc = #sluice.at<layout = affine_map<(d0, d1, d2, d3) -> (d0, d2, d3, d1)>>\n"
    "#tiles = #sluice.at<layout = affine_map<(d0, d1) -> (d0, d1 floordiv 4, d1 mod 4)>>\n";

void expectMatches(const std::vector<std::string> &operands, const std::string &op, const std::string &attributes,
                   const std::string &result, double tolerance) {
  std::string numbers, types;
  for (size_t i = 0; i < operands.size(); ++i) {
    numbers += (i ? ", %" : " %") + std::to_string(i);
    types += (i ? ", " : "") + operands[i];
  }
  KernelRun kernel(operands, "%a = sluice." + op + numbers + " {" + attributes + "} : (" + types + ") -> " + result,
                   "%a : " + result, 7, kNormLayouts);
  SCOPED_TRACE(op + " " + types + " -> " + result);
  ASSERT_TRUE(kernel.lowered()) << kernel.diagnostics();
  kernel.randomize(0.5, 2.5);
  for (int64_t rows : {7, 3, 1, 0}) {
    kernel.run(rows);
    EXPECT_LE(kernel.error(), tolerance) << "with " << rows << " rows\n" << kernel.text();
    auto inOrder = kernel.bytes(0);
    kernel.run(rows, /*seed=*/5);
    EXPECT_TRUE(kernel.bytes(0) == inOrder) << "other bits in another order";
  }
}

/// Forward and backward, about the mean and not.
void expectNormsMatch(const std::string &x, const std::string &vector, const std::string &attributes,
                      double tolerance) {
  for (const char *about : {"", ", rms"}) {
    std::string all = attributes + ", eps = 1.0e-3 : f64" + about;
    expectMatches({x, vector, vector}, "normalize", all, x, tolerance);
    expectMatches({x, vector, x}, "normalize_grad", all, x, tolerance);
  }
}

} // namespace

TEST(Norms, NormaliseRowsOfAnyLength) {
  for (int64_t width : {1, 3, 8, 16, 33, 200, 1000})
    for (auto [element, tolerance] : {std::pair("xf32>", 2e-4), {"xf64>", 1e-12}}) {
      std::string vector = "tensor<" + std::to_string(width) + element;
      expectNormsMatch("tensor<?x" + std::to_string(width) + element, vector, "axis = 1 : i64, dims = array<i64: 1>",
                       tolerance);
    }
  expectNormsMatch("tensor<?x3x40xf32>", "tensor<40xf32>", "axis = 2 : i64, dims = array<i64: 2>", 2e-4);
  expectNormsMatch("tensor<?x3x40xf32>", "tensor<f32>", "axis = 2 : i64, dims = array<i64>", 2e-4);
}

// Tests groups of channels with weights of channels, several dimensions, and rows that are no vectors in memory.
TEST(Norms, NormaliseGroupsAndSeveralDimensions) {
  expectNormsMatch("tensor<?x3x2x20xf32>", "tensor<3x2xf32>", "axis = 2 : i64, dims = array<i64: 1, 2>", 2e-4);
  expectNormsMatch("tensor<?x5x1x9xf64>", "tensor<5x1xf64>", "axis = 2 : i64, dims = array<i64: 1, 2>", 1e-12);
  expectNormsMatch("tensor<?x3x5x6xf32>", "tensor<3x5x6xf32>", "axis = 1 : i64, dims = array<i64: 1, 2, 3>", 2e-4);
  expectNormsMatch("tensor<?x3x5x6xf32, #nhwc>", "tensor<3xf32>", "axis = 1 : i64, dims = array<i64: 1>", 2e-4);
  expectNormsMatch("tensor<?x18xf32, #tiles>", "tensor<18xf32>", "axis = 1 : i64, dims = array<i64: 1>", 2e-4);
  expectNormsMatch("tensor<9x?x33xf32>", "tensor<9x33xf32>", "axis = 2 : i64, dims = array<i64: 0, 2>", 2e-4);
}

TEST(Norms, Multiply) {
  expectMatches({"tensor<?x21xf32>"}, "prod", "axes = array<i64: 1>", "tensor<?xf32>", 2e-5);
  expectMatches({"tensor<?x5x21xf64>"}, "prod", "axes = array<i64: 0, 1>", "tensor<21xf64>", 1e-13);
  expectMatches({"tensor<?x5x21xi32>"}, "prod", "axes = array<i64: 1>, keepdims", "tensor<?x1x21xi32>", 0);
}

TEST(Norms, Count) {
  const std::string counted = "start = 3.0 : f64, step = -2.0 : f64, axis = 1 : i64, type = ";
  for (const char *type : {"tensor<?x21xf32>", "tensor<?x21xf64>", "tensor<3x21xi32>", "tensor<?x40xi64>"})
    expectMatches({}, "iota", counted + type, type, 0);
  expectMatches({}, "iota", counted + "tensor<?x18xf32>", "tensor<?x18xf32, #tiles>", 0);
  expectMatches({}, "iota", "start = 0.1 : f64, step = 0.3 : f64, axis = 0 : i64, type = tensor<50x?xf64>",
                "tensor<50x?xf64>", 0);
}

} // namespace sluice::cpu::testing
