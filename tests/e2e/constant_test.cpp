// Constants with data: as operands of a product, in a fused chain and as an output, in f32 and f64.
#include "tests/e2e/Harness.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace sluice::test;
using testing::ElementsAre;

namespace {

// y = x k + b
constexpr const char *kModel = R"(
module @constants {
  sluice.model "constants" format 2 phase "model" capacity 4
  sluice.graph ["x"] (%x: tensor<?x3xf32>) {
    %k = sluice.constant {value = dense<[[1.0, -2.0], [3.5, 4.0], [0.25, 6.0]]> : tensor<3x2xf32>} : () -> tensor<3x2xf32>
    %b = sluice.constant {value = dense<[10.0, -0.5]> : tensor<2xf32>} : () -> tensor<2xf32>
    %p = sluice.einsum "ab,bc->ac" %x, %k : (tensor<?x3xf32>, tensor<3x2xf32>) -> tensor<?x2xf32>
    %e = sluice.expand %b {dims = array<i64: 1>, shape = array<i64: ?, 2>} : (tensor<2xf32>) -> tensor<?x2xf32>
    %y = sluice.add %p, %e : (tensor<?x2xf32>, tensor<?x2xf32>) -> tensor<?x2xf32>
    sluice.output "y", %y : tensor<?x2xf32>
    sluice.output "k", %k : tensor<3x2xf32>
  }
}
)";

void expectValues(const sluice::CompileOptions &options) {
  Compiled model(kModel, options);
  Values outputs = model.run("predict", {{"x", {1, 2, 4, -1, 0, 2}}}, 2);
  EXPECT_THAT(outputs.at("y"), ElementsAre(19, 29.5, 9.5, 13.5));
  EXPECT_THAT(outputs.at("k"), ElementsAre(1, -2, 3.5, 4, 0.25, 6));
}

} // namespace

TEST(Constants, InSinglePrecision) { expectValues({}); }

TEST(Constants, InDoublePrecision) {
  sluice::CompileOptions options;
  options.dtype = sluice::f64;
  expectValues(options);
}

TEST(Constants, OpByOp) {
  sluice::CompileOptions options;
  options.fuse = false;
  expectValues(options);
}
