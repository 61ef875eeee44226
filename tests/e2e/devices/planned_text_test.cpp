// The text of a planned module says all that its plan needs: parsed again, it gives the same plan.
#include "ir/text/ParseGuard.h"
#include "passes/artifact/BuildPlan.h"
#include "runtime/plan/WritePlan.h"
#include "tests/e2e/Harness.h"
#include <gtest/gtest.h>

using namespace sluice;
using namespace sluice::test;

static std::string textOf(mlir::ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream out(text);
  module->print(out, mlir::OpPrintingFlags().enableDebugInfo());
  return text;
}

static std::string planOf(mlir::ModuleOp module) {
  mlir::FailureOr<ir::Target> target = ir::Target::of(module);
  EXPECT_TRUE(mlir::succeeded(target));
  sluice_target_info host{};
  host.struct_size = sizeof host;
  host.cpu = "any";
  return runtime::writePlan(passes::buildPlan(module, {*target, host, "", "", {}}).plan);
}

class PlannedText : public testing::TestWithParam<const char *> {};

TEST_P(PlannedText, GivesTheSamePlanAgain) {
  Interpreted model(modelText("lenet", GetParam()), "planned");
  mlir::MLIRContext context;
  context.loadDialect<ir::SluiceDialect>();
  auto again = ir::parseModuleText(textOf(model.module()), "planned.mlir", context);
  ASSERT_TRUE(bool(again)) << llvm::toString(again.takeError());
  EXPECT_EQ(planOf(model.module()), planOf(**again));
}

INSTANTIATE_TEST_SUITE_P(LeNet, PlannedText,
                         testing::Values("--batch 8", "--batch 8 --devices cpu,sim:0 --pin conv=gpu:0 --copies insert",
                                         "--batch 8 --devices sim:0,sim:1,cpu --pin fc=gpu:1 --copies insert"));
