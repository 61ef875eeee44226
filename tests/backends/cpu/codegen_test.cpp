#include "backends/cpu/compiler/Codegen.h"
#include "backends/cpu/compiler/StageFunction.h"
#include "backends/cpu/compiler/VectorAccess.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/MLIRContext.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

namespace sluice::cpu {
namespace {

using StageFn = void (*)(void *const *, int64_t, int64_t, int64_t);

// Tests that a stage function runs exactly the tasks that it is given, each on its own vector.
TEST(Codegen, RunsTheTasksOfAStage) {
  mlir::MLIRContext context;
  context.loadDialect<mlir::math::MathDialect>();
  auto loc = mlir::UnknownLoc::get(&context);
  auto module = mlir::OwningOpRef<mlir::ModuleOp>(mlir::ModuleOp::create(loc));
  StageFunction stage = StageFunction::create(*module, "exponentials", loc);
  auto type = mlir::VectorType::get({4}, mlir::Float32Type::get(&context));
  stage.forEachTask([&](mlir::OpBuilder &b, mlir::Value task) {
    mlir::Value in = elementAddress(b, loc, type, stage.buffer(0), task);
    mlir::Value out = elementAddress(b, loc, type, stage.buffer(1), task);
    storeVector(b, loc, b.create<mlir::math::ExpOp>(loc, loadVector(b, loc, type, in)), out);
  });

  auto object = compileToObject(*module, Target::host());
  ASSERT_TRUE(bool(object)) << llvm::toString(object.takeError());
  auto loaded = loadObject(*object);
  ASSERT_TRUE(bool(loaded)) << llvm::toString(loaded.takeError());
  auto run = reinterpret_cast<StageFn>(llvm::cantFail(loaded->lookup("exponentials")));

  std::array<float, 12> in, out;
  for (int i = 0; i < 12; ++i)
    in[i] = 0.25f * i;
  out.fill(-1);
  std::array<void *, 2> buffers = {in.data(), out.data()};
  run(buffers.data(), 0, 1, 3);

  EXPECT_EQ(out[3], -1);
  EXPECT_NEAR(out[4], std::exp(1.0), 1e-6);
  EXPECT_NEAR(out[11], std::exp(2.75), 1e-5);
}

} // namespace
} // namespace sluice::cpu
