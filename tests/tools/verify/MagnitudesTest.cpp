// What `sluice verify` allows results of f32 that follow from halves: numbers worked out by hand.
#include "tools/compiler/Magnitudes.h"
#include "ir/Dialect.h"
#include "ir/text/ParseGuard.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace mlir;
using namespace sluice;
using testing::Each;
using testing::ElementsAre;

namespace {

/// The errors that an entry point's y may have, which these ops make of x.
std::vector<double> errorsOf(const std::string &ops, const std::vector<double> &x) {
  MLIRContext context;
  context.loadDialect<ir::SluiceDialect>();
  std::string text = "module @m {\n  sluice.model \"m\" format 1 phase \"train\"\n"
                     "  sluice.entry @step [\"x\"] -> [\"y\"] (%x: tensor<4xf32>) {\n" +
                     ops + "    sluice.return %y : tensor<4xf32>\n  }\n}\n";
  OwningOpRef<ModuleOp> module = llvm::cantFail(ir::parseModuleText(text, "m.mlir", context));
  ir::HostTensor operand({4}, 0);
  operand.data.assign(x.begin(), x.end());
  Block &body = (*module->getOps<ir::EntryOp>().begin()).getActions();
  ir::HostTensor errors = compiler::errorsOfHalves(body, {operand}, /*rows=*/0)[0];
  return {errors.data.begin(), errors.data.end()};
}

constexpr const char *kTwice =
    "    %two = sluice.full {value = 2.0 : f64, type = tensor<4xf32>} : () -> tensor<4xf32>\n"
    "    %y = sluice.mul %w, %two : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>\n";

} // namespace

// A half is off by 8 units in its last place, 2^-5 of itself in bf16; what is made of it, by twice as much.
TEST(ErrorsOfHalves, GrowAsWhatIsMadeOfThem) {
  std::string rounded = "    %h = sluice.cast %x {to = bf16} : (tensor<4xf32>) -> tensor<4xbf16>\n"
                        "    %w = sluice.cast %h {to = f32} : (tensor<4xbf16>) -> tensor<4xf32>\n";
  EXPECT_THAT(errorsOf(rounded + kTwice, {1, -2, 0, 4}), ElementsAre(1 / 16., 1 / 8., 0, 1 / 4.));
}

// Constants, and ops that give something of nothing, among them.
TEST(ErrorsOfHalves, AreNoneWithoutHalves) {
  std::string wide = "    %w = sluice.softmax %x {axis = 0 : i64} : (tensor<4xf32>) -> tensor<4xf32>\n";
  EXPECT_THAT(errorsOf(wide + kTwice, {1, -2, 0, 4}), Each(0));
}
