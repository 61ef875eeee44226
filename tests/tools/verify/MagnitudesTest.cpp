// Compares the magnitudes of results, and the errors that `sluice verify` allows because of two-byte floats, with
// values computed by hand.
#include "tools/compiler/Magnitudes.h"
#include "ir/Dialect.h"
#include "ir/text/ParseGuard.h"
#include <cmath>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace mlir;
using namespace sluice;
using testing::Each;
using testing::ElementsAre;

namespace {

using Walk = llvm::function_ref<SmallVector<ir::HostTensor>(Block &, ArrayRef<ir::HostTensor>)>;

/// The result of a walk for the value y of type `type`, which these ops compute from x in an entry point.
std::vector<double> walked(Walk walk, const std::string &ops, const std::vector<double> &x,
                           const std::string &type = "tensor<4xf32>") {
  MLIRContext context;
  context.loadDialect<ir::SluiceDialect>();
  std::string text = "module @m {\n  sluice.model \"m\" format 2 phase \"train\"\n"
                     "  sluice.entry @step [\"x\"] -> [\"y\"] (%x: tensor<4xf32>) {\n" +
                     ops + "    sluice.return %y : " + type + "\n  }\n}\n";
  OwningOpRef<ModuleOp> module = llvm::cantFail(ir::parseModuleText(text, "m.mlir", context));
  ir::HostTensor operand({4}, 0);
  operand.data.assign(x.begin(), x.end());
  Block &body = (*module->getOps<ir::EntryOp>().begin()).getActions();
  return walk(body, {operand})[0].data;
}

/// The errors allowed in y because of two-byte floats.
std::vector<double> errorsOf(const std::string &ops, const std::vector<double> &x) {
  return walked([](Block &body, ArrayRef<ir::HostTensor> of) { return compiler::errorsOfHalves(body, of, /*rows=*/0); },
                ops, x);
}

/// The magnitudes of y's elements.
std::vector<double> magnitudesOf(const std::string &ops, const std::vector<double> &x,
                                 const std::string &type = "tensor<4xf32>") {
  return walked(
      [](Block &body, ArrayRef<ir::HostTensor> of) {
        return compiler::magnitudesOf(body, of, /*rows=*/0, /*perturbs=*/true);
      },
      ops, x, type);
}

constexpr const char *kTwice =
    "    %two = sluice.full {value = 2.0 : f64, type = tensor<4xf32>} : () -> tensor<4xf32>\n"
    "    %y = sluice.mul %w, %two : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>\n";

} // namespace

// A two-byte float is off by 8 units in its last place, 2^-5 relative in bf16; values computed from it by twice as
// much.
TEST(ErrorsOfHalves, GrowAsWhatIsMadeOfThem) {
  std::string rounded = "    %h = sluice.cast %x {to = bf16} : (tensor<4xf32>) -> tensor<4xbf16>\n"
                        "    %w = sluice.cast %h {to = f32} : (tensor<4xbf16>) -> tensor<4xf32>\n";
  EXPECT_THAT(errorsOf(rounded + kTwice, {1, -2, 0, 4}), ElementsAre(1 / 16., 1 / 8., 0, 1 / 4.));
}

// Includes constants and ops without operands.
TEST(ErrorsOfHalves, AreNoneWithoutHalves) {
  std::string wide = "    %w = sluice.softmax %x {axis = 0 : i64} : (tensor<4xf32>) -> tensor<4xf32>\n";
  EXPECT_THAT(errorsOf(wide + kTwice, {1, -2, 0, 4}), Each(0));
}

// x - 100 for x = 100 + e, divided by a deviation of 1. Rounding changes x by up to 2^-24 of 100.
TEST(Magnitudes, OfANormAreThoseOfItsMean) {
  std::string norm =
      "    %one = sluice.full {value = 1.0 : f64, type = tensor<f32>} : () -> tensor<f32>\n"
      "    %zero = sluice.full {value = 0.0 : f64, type = tensor<f32>} : () -> tensor<f32>\n"
      "    %y = sluice.normalize %x, %one, %zero {axis = 0 : i64, dims = array<i64>, eps = 1.0e-9 : f64} : "
      "(tensor<4xf32>, tensor<f32>, tensor<f32>) -> tensor<4xf32>\n";
  for (double magnitude : magnitudesOf(norm, {101, 99, 101, 99})) {
    EXPECT_GT(magnitude, 30);
    EXPECT_LT(magnitude, 300);
  }
}

// A masked score. The others change the result by up to 1.05 times their relative change.
TEST(Magnitudes, OfASoftmaxLeaveOutWhatAMaskHides) {
  std::string softmax = "    %y = sluice.softmax %x {axis = 0 : i64} : (tensor<4xf32>) -> tensor<4xf32>\n";
  std::vector<double> magnitudes = magnitudesOf(softmax, {-INFINITY, 1, 2, 3});
  EXPECT_EQ(magnitudes[0], 0);
  EXPECT_GT(magnitudes[3], 0.7);
  EXPECT_LT(magnitudes[3], 1.1);
}

// The square of a sum that cancels. Its error is the square of the sum's error.
TEST(Magnitudes, OfASquareAroundZeroAreNotZero) {
  std::string square = "    %n = sluice.sub %x, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>\n"
                       "    %y = sluice.square %n : (tensor<4xf32>) -> tensor<4xf32>\n";
  std::string product = square;
  product.replace(product.find("sluice.square %n"), 16, "sluice.mul %n, %n");
  product.replace(product.rfind("(tensor<4xf32>)"), 15, "(tensor<4xf32>, tensor<4xf32>)");
  for (const std::string &ops : {square, product})
    for (double magnitude : magnitudesOf(ops, {1, 1, 1, 1})) {
      EXPECT_GT(magnitude, 0);
      EXPECT_LT(magnitude, 1e-5);
    }
}

// For x = 1, rounding decides whether x - 1 is greater than 0.
TEST(Magnitudes, OfAComparisonAreThoseOfWhatRoundingDecides) {
  std::string compared =
      "    %one = sluice.full {value = 1.0 : f64, type = tensor<4xf32>} : () -> tensor<4xf32>\n"
      "    %zero = sluice.full {value = 0.0 : f64, type = tensor<4xf32>} : () -> tensor<4xf32>\n"
      "    %d = sluice.sub %x, %one : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>\n"
      "    %y = sluice.compare %d, %zero {predicate = #sluice<predicate gt>} : (tensor<4xf32>, tensor<4xf32>) -> "
      "tensor<4xi1>\n";
  std::vector<double> magnitudes = magnitudesOf(compared, {1, 2, 0.5, 1}, "tensor<4xi1>");
  EXPECT_GT(magnitudes[0], 0);
  EXPECT_EQ(magnitudes[1], 0);
  EXPECT_EQ(magnitudes[2], 0);

  std::string chosen =
      "    %w = sluice.where %c, %x, %zero : (tensor<4xi1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>\n"
      "    %y = sluice.neg %w : (tensor<4xf32>) -> tensor<4xf32>\n";
  size_t place = compared.find("%y");
  magnitudes = magnitudesOf(compared.replace(place, 2, "%c") + chosen, {1, 2, 0.5, 1});
  EXPECT_GT(magnitudes[0], 1000);
  EXPECT_LT(magnitudes[1], 10);
}
