// `sluice verify`: code is compared with the reference interpreter kernel by kernel, and the first that differs is
// named. A wrong kernel is made by editing the reference's side: the code then is not what the module says.
#include "tools/compiler/Verify.h"
#include "ir/Dialect.h"
#include "ir/ParseGuard.h"
#include "tools/compiler/LoadedModel.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace mlir;
using namespace sluice;
using namespace sluice::compiler;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

// y = tanh(relu(x w)), where x w > 0.
constexpr const char *kModel = R"(
module @small attributes {sluice.capacity = 4 : i64, sluice.model = "small"} {
  sluice.state "parameter" @w : tensor<3x2xf32> = <"constant", 1.0 : f64>
  sluice.graph ["x"] (%x: tensor<?x3xf32>) {
    %w = sluice.get @w : tensor<3x2xf32>
    %p = sluice.matmul %x, %w : (tensor<?x3xf32>, tensor<3x2xf32>) -> tensor<?x2xf32>
    %r = sluice.relu %p : (tensor<?x2xf32>) -> tensor<?x2xf32>
    %y = sluice.tanh %r : (tensor<?x2xf32>) -> tensor<?x2xf32>
    sluice.output "y", %y : tensor<?x2xf32>
  }
}
)";

class VerifyTest : public testing::Test {
protected:
  void compile(bool fuse) {
    module = llvm::cantFail(ir::parseModuleText(kModel, "small.mlir", context));
    options.compile.fuse = fuse;
    options.compile.reuseMemory = false;
    Compiled compiled = llvm::cantFail(compileModule(*module, options.compile));
    model = llvm::cantFail(LoadedModel::load(compiled.objects, {.threads = 1}));
  }

  /// Makes every relu a negation in the module, but not in the code.
  void negateRelus() {
    SmallVector<ir::ReluOp> relus;
    module->walk([&](ir::ReluOp relu) { relus.push_back(relu); });
    for (ir::ReluOp relu : relus) {
      OpBuilder builder(relu);
      auto neg = builder.create<ir::NegOp>(relu.getLoc(), relu.getY().getType(), relu.getA());
      relu.getY().replaceAllUsesWith(neg.getY());
      relu.erase();
    }
  }

  Verification verify() { return llvm::cantFail(compareWithReference(*module, model->instance(), options)); }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  std::unique_ptr<LoadedModel> model;
  VerifyOptions options;
};

} // namespace

TEST_F(VerifyTest, CodeThatIsRightAgrees) {
  compile(/*fuse=*/false);
  Verification result = verify();

  EXPECT_FALSE(result.first);
  EXPECT_THAT(result.entries, ElementsAre("init", "predict"));
  EXPECT_GE(result.kernels, 4); // the initial value, the product, relu and tanh
  EXPECT_GT(result.largestError, 0);
}

TEST_F(VerifyTest, TheFirstOpThatDiffersIsNamed) {
  compile(/*fuse=*/false);
  negateRelus();
  Verification result = verify();

  ASSERT_TRUE(result.first); // tanh differs too, later
  EXPECT_EQ(result.first->entry, "predict");
  EXPECT_THAT(result.first->ops, ElementsAre("sluice.neg"));
  EXPECT_THAT(result.first->place, HasSubstr("small.mlir:7:"));
  EXPECT_EQ(result.first->actual, -result.first->expected);
  EXPECT_GT(result.first->error, result.first->tolerance);
}

TEST_F(VerifyTest, AFusedKernelIsNamedWithItsOps) {
  compile(/*fuse=*/true);
  negateRelus();
  Verification result = verify();

  ASSERT_TRUE(result.first);
  EXPECT_THAT(result.first->ops, testing::Contains("sluice.neg"));
  EXPECT_FALSE(result.first->kernel.empty());
}
