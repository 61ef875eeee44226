// `sluice verify` compares code with the reference interpreter kernel by kernel and names the first difference. A wrong
// kernel is simulated by editing the reference's module, which then differs from the code.
#include "tools/compiler/Verify.h"
#include "ir/Dialect.h"
#include "ir/text/ParseGuard.h"
#include "tests/e2e/Harness.h"
#include "tools/compiler/LoadedModel.h"
#include <cmath>
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
module @small {
  sluice.model "small" format 2 phase "model" capacity 4
  sluice.state parameter @w : tensor<3x2xf32> = <"constant", 1.0 : f64>
  sluice.graph ["x"] (%x: tensor<?x3xf32>) {
    %w = sluice.get @w : tensor<3x2xf32>
    %p = sluice.einsum "ab,bc->ac" %x, %w : (tensor<?x3xf32>, tensor<3x2xf32>) -> tensor<?x2xf32>
    %r = sluice.relu %p : (tensor<?x2xf32>) -> tensor<?x2xf32>
    %y = sluice.tanh %r : (tensor<?x2xf32>) -> tensor<?x2xf32>
    sluice.output "y", %y : tensor<?x2xf32>
  }
}
)";

// y = the sum of x and -x: pure rounding error of terms that are not small.
constexpr const char *kCancelling = R"(
module @small {
  sluice.model "small" format 2 phase "model" capacity 4
  sluice.graph ["x"] (%x: tensor<?x1000xf32>) {
    %e = sluice.exp %x : (tensor<?x1000xf32>) -> tensor<?x1000xf32>
    %n = sluice.neg %e : (tensor<?x1000xf32>) -> tensor<?x1000xf32>
    %all = sluice.concat %e, %x, %n {axis = 1 : i64} : (tensor<?x1000xf32>, tensor<?x1000xf32>, tensor<?x1000xf32>) -> tensor<?x3000xf32>
    %less = sluice.neg %x : (tensor<?x1000xf32>) -> tensor<?x1000xf32>
    %whole = sluice.concat %all, %less {axis = 1 : i64} : (tensor<?x3000xf32>, tensor<?x1000xf32>) -> tensor<?x4000xf32>
    %y = sluice.sum %whole {axes = array<i64: 1>} : (tensor<?x4000xf32>) -> tensor<?xf32>
    sluice.output "y", %y : tensor<?xf32>
  }
}
)";

// y = relu(p) + p, where p must stay until both reads.
constexpr const char *kReadTwice = R"(
module @small {
  sluice.model "small" format 2 phase "model" capacity 4
  sluice.graph ["x"] (%x: tensor<?x16xf32>) {
    %p = sluice.exp %x : (tensor<?x16xf32>) -> tensor<?x16xf32>
    %r = sluice.tanh %p : (tensor<?x16xf32>) -> tensor<?x16xf32>
    %y = sluice.add %r, %p : (tensor<?x16xf32>, tensor<?x16xf32>) -> tensor<?x16xf32>
    sluice.output "y", %y : tensor<?x16xf32>
  }
}
)";

// All keys except the first are hidden. The changes due to its probability cancel.
constexpr const char *kOneKey = R"(
module @small {
  sluice.model "small" format 2 phase "model" capacity 4
  sluice.state parameter @w : tensor<8xf32> = <"uniform", -0.5 : f64, 0.5 : f64>
  sluice.state hyperparameter @lr : tensor<f32> = <"constant", 0.1 : f64>
  sluice.graph ["x"] (%x: tensor<?x2x7x8xf32>) {
    %w = sluice.get @w : tensor<8xf32>
    %mask = sluice.constant {value = dense<[[[[0.0, -1.0e9, -1.0e9, -1.0e9, -1.0e9, -1.0e9, -1.0e9]]]]> : tensor<1x1x1x7xf32>} : () -> tensor<1x1x1x7xf32>
    %e = sluice.expand %w {dims = array<i64: 3>, shape = array<i64: ?, 2, 7, 8>} : (tensor<8xf32>) -> tensor<?x2x7x8xf32>
    %q = sluice.mul %x, %e : (tensor<?x2x7x8xf32>, tensor<?x2x7x8xf32>) -> tensor<?x2x7x8xf32>
    %y, %l = sluice.scaled_dot_product_attention %q, %q, %x, %mask {scale = 0.35 : f64} : (tensor<?x2x7x8xf32>, tensor<?x2x7x8xf32>, tensor<?x2x7x8xf32>, tensor<1x1x1x7xf32>) -> (tensor<?x2x7x8xf32>, tensor<?x2x7xf32>)
    sluice.output "y", %y : tensor<?x2x7x8xf32>
    %s = sluice.square %y : (tensor<?x2x7x8xf32>) -> tensor<?x2x7x8xf32>
    %m = sluice.mean %s {axes = array<i64: 0, 1, 2, 3>} : (tensor<?x2x7x8xf32>) -> tensor<f32>
    sluice.minimize %m, #sluice.sgd<momentum = 0.0 : f64, dampening = 0.0 : f64, weight_decay = 0.0 : f64, nesterov = false> lr @lr [@w] : tensor<f32>
  }
}
)";

// One or two of 70 keys are not hidden. The second block of keys is left out.
constexpr const char *kHiddenKeys = R"(
module @small {
  sluice.model "small" format 2 phase "model" capacity 4
  sluice.graph ["x", "length"] (%x: tensor<?x2x70x4xf32>, %length: tensor<?xi32>) {
    %two = sluice.full {value = 2.0 : f64, type = tensor<?x2x70x4xf32>} : () -> tensor<?x2x70x4xf32>
    %q = sluice.mul %x, %two : (tensor<?x2x70x4xf32>, tensor<?x2x70x4xf32>) -> tensor<?x2x70x4xf32>
    %place = sluice.iota {start = 0.0 : f64, step = 1.0 : f64, axis = 1 : i64, type = tensor<?x70xi32>} : () -> tensor<?x70xi32>
    %l = sluice.expand %length {dims = array<i64: 0>, shape = array<i64: ?, 70>} : (tensor<?xi32>) -> tensor<?x70xi32>
    %in = sluice.compare %place, %l {predicate = #sluice<predicate le>} : (tensor<?x70xi32>, tensor<?x70xi32>) -> tensor<?x70xi1>
    %mask = sluice.reshape %in {shape = array<i64: ?, 1, 1, 70>} : (tensor<?x70xi1>) -> tensor<?x1x1x70xi1>
    %y, %s = sluice.scaled_dot_product_attention %q, %q, %x, %mask {scale = 0.35 : f64} : (tensor<?x2x70x4xf32>, tensor<?x2x70x4xf32>, tensor<?x2x70x4xf32>, tensor<?x1x1x70xi1>) -> (tensor<?x2x70x4xf32>, tensor<?x2x70xf32>)
    sluice.output "y", %y : tensor<?x2x70x4xf32>
  }
}
)";

// A norm of values whose mean is 300 times their deviation. Rounding removes their last digits.
constexpr const char *kLargeMean = R"(
module @small {
  sluice.model "small" format 2 phase "model" capacity 8
  sluice.graph ["x"] (%x: tensor<?x6xf32>) {
    %mean = sluice.full {value = 100.0 : f64, type = tensor<?x6xf32>} : () -> tensor<?x6xf32>
    %s = sluice.add %x, %mean : (tensor<?x6xf32>, tensor<?x6xf32>) -> tensor<?x6xf32>
    %n = sluice.neg %s : (tensor<?x6xf32>) -> tensor<?x6xf32>
    %one = sluice.full {value = 1.0 : f64, type = tensor<f32>} : () -> tensor<f32>
    %zero = sluice.full {value = 0.0 : f64, type = tensor<f32>} : () -> tensor<f32>
    %y = sluice.normalize %n, %one, %zero {axis = 1 : i64, dims = array<i64>, eps = 1.0e-3 : f64} : (tensor<?x6xf32>, tensor<f32>, tensor<f32>) -> tensor<?x6xf32>
    %z = sluice.neg %y : (tensor<?x6xf32>) -> tensor<?x6xf32>
    sluice.output "z", %z : tensor<?x6xf32>
  }
}
)";

// 0 / 0 and 1 / 0 for inputs that are 0, and -1 in place of NaN.
constexpr const char *kNotFinite = R"(
module @small {
  sluice.model "small" format 2 phase "model" capacity 4
  sluice.graph ["x"] (%x: tensor<?x3xf32>) {
    %one = sluice.full {value = 1.0 : f64, type = tensor<?x3xf32>} : () -> tensor<?x3xf32>
    %nan = sluice.div %x, %x : (tensor<?x3xf32>, tensor<?x3xf32>) -> tensor<?x3xf32>
    %inf = sluice.div %one, %x : (tensor<?x3xf32>, tensor<?x3xf32>) -> tensor<?x3xf32>
    %less = sluice.neg %inf : (tensor<?x3xf32>) -> tensor<?x3xf32>
    sluice.output "nan", %nan : tensor<?x3xf32>
    sluice.output "less", %less : tensor<?x3xf32>
  }
}
)";

class VerifyTest : public testing::Test {
protected:
  void compile(bool fuse, const char *text = kModel) {
    module = llvm::cantFail(ir::parseModuleText(text, "small.mlir", context));
    options.compile.fuse = fuse;
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

  /// Makes every negation of the module one and a thousandth of it, but not in the code.
  void exaggerateNegations() {
    SmallVector<ir::NegOp> negations;
    module->walk([&](ir::NegOp neg) { negations.push_back(neg); });
    for (ir::NegOp neg : negations) {
      OpBuilder builder(neg);
      builder.setInsertionPointAfter(neg);
      auto factor =
          builder.create<ir::FullOp>(neg.getLoc(), builder.getF64FloatAttr(1.001), TypeAttr::get(neg.getY().getType()));
      auto more = builder.create<ir::MulOp>(neg.getLoc(), neg.getY(), factor);
      neg.getY().replaceAllUsesExcept(more.getResult(), more);
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
  EXPECT_GE(result.launches, 4); // the initial value, the product, relu and tanh
  EXPECT_GT(result.largestError, 0);
}

TEST_F(VerifyTest, TheFirstOpThatDiffersIsNamed) {
  compile(/*fuse=*/false);
  negateRelus();
  Verification result = verify();

  ASSERT_TRUE(result.first); // tanh also differs, later
  EXPECT_EQ(result.first->entry, "predict");
  EXPECT_THAT(result.first->ops, ElementsAre("sluice.neg"));
  EXPECT_THAT(result.first->place, HasSubstr("small.mlir:8:"));
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

TEST_F(VerifyTest, ASumWhoseTermsCancelAgrees) {
  for (bool fuse : {false, true}) {
    compile(fuse, kCancelling);
    Verification result = verify();
    EXPECT_FALSE(result.first) << "by " << result.first->error << ": " << result.first->actual << " instead of "
                               << result.first->expected;
    EXPECT_LT(result.largestError, 1e-6);
  }
}

TEST_F(VerifyTest, ASumWhoseTermsCancelCanStillBeWrong) {
  for (bool fuse : {false, true}) {
    compile(fuse, kCancelling);
    exaggerateNegations();
    Verification result = verify();
    ASSERT_TRUE(result.first);
    EXPECT_GT(result.first->error, 10 * result.first->tolerance);
  }
}

// The shipped plan runs: values share memory in it, and an early overwrite is detected.
TEST_F(VerifyTest, APlanThatWritesOverAValueIsSeen) {
  options.compile.fuse = false;
  std::string text = kReadTwice;
  module = llvm::cantFail(ir::parseModuleText(text, "small.mlir", context));
  llvm::cantFail(compileModule(*module, options.compile));
  test::Compiled planned(text, options.compile);
  EXPECT_FALSE(llvm::cantFail(compareWithReference(*module, planned.program(), options)).first);

  std::string plan = planned.planText();
  const runtime::Entry &predict = planned.program().entry("predict");
  auto placeOf = [&](size_t launch) {
    return "\"offset\":" + std::to_string(predict.launches()[launch]->buffers.back().slot.offset);
  };
  ASSERT_NE(placeOf(0), placeOf(1));
  size_t at = 0; // tanh then overwrites exp, which add still reads
  while ((at = plan.find(placeOf(1), at)) != std::string::npos)
    plan.replace(at, placeOf(1).size(), placeOf(0));
  test::Compiled spoilt(text, options.compile, {.plan = plan});
  Verification result = llvm::cantFail(compareWithReference(*module, spoilt.program(), options));
  ASSERT_TRUE(result.first);
  EXPECT_THAT(result.first->ops, ElementsAre("sluice.add"));
}

TEST_F(VerifyTest, AnAttentionOfOneKeyAgrees) {
  for (bool fuse : {false, true})
    for (options.seed = 0; options.seed < 3; ++options.seed) {
      compile(fuse, kOneKey);
      Verification result = verify();
      EXPECT_FALSE(result.first) << result.first->ops.front() << " by " << result.first->error << ": "
                                 << result.first->actual << " instead of " << result.first->expected;
    }
}

TEST_F(VerifyTest, AnAttentionCanStillBeWrong) {
  compile(/*fuse=*/true, kOneKey);
  module->walk([](ir::ScaledDotProductAttentionOp op) { op.getVMutable().assign(op.getQ()); });
  ASSERT_TRUE(verify().first);
  EXPECT_GT(verify().first->error, 10 * verify().first->tolerance);

  std::string allKeys = kOneKey;
  for (size_t at = 0; (at = allKeys.find("-1.0e9")) != std::string::npos;)
    allKeys.replace(at, 6, "0.5");
  compile(/*fuse=*/true, allKeys.c_str());
  module->walk([](ir::AttentionQueryGradOp op) { op.setScale(APFloat(0.36)); });
  ASSERT_TRUE(verify().first);
  EXPECT_THAT(verify().first->ops, testing::Contains("sluice.attention_query_grad"));
  EXPECT_GT(verify().first->error, 10 * verify().first->tolerance);
}

TEST_F(VerifyTest, AnAttentionWithNaNInHiddenKeysAgrees) {
  options.nans = 0.002;
  for (bool fuse : {false, true})
    for (options.seed = 0; options.seed < 4; ++options.seed) {
      compile(fuse, kHiddenKeys);
      Verification result = verify();
      EXPECT_FALSE(result.first) << result.first->ops.front() << ": " << result.first->actual << " instead of "
                                 << result.first->expected;
    }
}

TEST_F(VerifyTest, AnAttentionWithNaNInHiddenKeysCanStillBeWrong) {
  options.nans = 0.002;
  compile(/*fuse=*/true, kHiddenKeys);
  module->walk([](ir::ScaledDotProductAttentionOp op) { op.getVMutable().assign(op.getQ()); });
  ASSERT_TRUE(verify().first);
  EXPECT_GT(verify().first->error, 10 * verify().first->tolerance);
}

TEST_F(VerifyTest, ANormOfALargeMeanAgrees) {
  for (bool fuse : {false, true})
    for (options.seed = 0; options.seed < 5; ++options.seed) {
      compile(fuse, kLargeMean);
      options.rows = 8;
      EXPECT_FALSE(verify().first);
    }
}

TEST_F(VerifyTest, ANormOfALargeMeanCanStillBeWrong) {
  for (bool fuse : {false, true}) {
    compile(fuse, kLargeMean);
    module->walk([](ir::NormalizeOp op) { op.setEps(APFloat(3e-3)); });
    ASSERT_TRUE(verify().first);
    EXPECT_GT(verify().first->error, verify().first->tolerance);
  }
}

TEST_F(VerifyTest, WhatIsNotFiniteAgreesWhereItIsTheSame) {
  options.zeros = 0.5;
  for (bool fuse : {false, true}) {
    compile(fuse, kNotFinite);
    EXPECT_FALSE(verify().first);
  }
}

TEST_F(VerifyTest, AnInfinityOfTheOtherSignDiffers) {
  options.zeros = 0.5;
  compile(/*fuse=*/false, kNotFinite);
  module->walk([](ir::NegOp op) { op.getY().replaceAllUsesWith(op.getA()); });
  ASSERT_TRUE(verify().first);
  EXPECT_EQ(verify().first->error, INFINITY);
}
