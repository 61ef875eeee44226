#include "backends/cpu/compiler/llvm/Codegen.h"
#include "backends/cpu/compiler/machine/StageFunction.h"
#include "backends/cpu/compiler/machine/VectorAccess.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/BinaryFormat/Magic.h"

#include <array>
#include <cmath>
#include <gtest/gtest.h>
#include <string>

namespace sluice::cpu {
namespace {

using StageFn = void (*)(void *const *, int64_t, int64_t, int64_t);

mlir::VectorType fourFloats(mlir::ModuleOp module) {
  return mlir::VectorType::get({4}, mlir::Float32Type::get(module.getContext()));
}

/// Four times 1/4, in the module's own data.
mlir::LLVM::GlobalOp addQuarters(mlir::ModuleOp module) {
  auto b = mlir::OpBuilder::atBlockBegin(module.getBody());
  const std::array<float, 4> quarters = {0.25f, 0.25f, 0.25f, 0.25f};
  std::string bytes(reinterpret_cast<const char *>(quarters.data()), sizeof quarters);
  return b.create<mlir::LLVM::GlobalOp>(module.getLoc(), mlir::LLVM::LLVMArrayType::get(b.getI8Type(), bytes.size()),
                                        /*isConstant=*/true, mlir::LLVM::Linkage::Internal, "quarters",
                                        b.getStringAttr(bytes), /*alignment=*/64);
}

/// A private function that raises e to a quarter of four numbers.
mlir::func::FuncOp addExponential(mlir::ModuleOp module) {
  auto loc = module.getLoc();
  mlir::LLVM::GlobalOp quarters = addQuarters(module);
  auto b = mlir::OpBuilder::atBlockBegin(module.getBody());
  auto type = fourFloats(module);
  auto function = b.create<mlir::func::FuncOp>(loc, "exponential", b.getFunctionType({type}, {type}));
  function.setPrivate();
  b.setInsertionPointToStart(function.addEntryBlock());
  mlir::Value factor = loadVector(b, loc, type, b.create<mlir::LLVM::AddressOfOp>(loc, quarters));
  mlir::Value product = b.create<mlir::arith::MulFOp>(loc, function.getArgument(0), factor);
  b.create<mlir::func::ReturnOp>(loc, mlir::Value(b.create<mlir::math::ExpOp>(loc, product)));
  return function;
}

/// A stage whose tasks call the function on four numbers each.
void addExponentials(mlir::ModuleOp module, const std::string &name, mlir::func::FuncOp exponential) {
  auto loc = module.getLoc();
  StageFunction stage = StageFunction::create(module, name, loc);
  auto type = fourFloats(module);
  stage.forEachTask([&](mlir::OpBuilder &b, mlir::Value task) {
    mlir::Value in = elementAddress(b, loc, type, stage.buffer(0), task);
    mlir::Value out = elementAddress(b, loc, type, stage.buffer(1), task);
    auto call = b.create<mlir::func::CallOp>(loc, exponential, loadVector(b, loc, type, in));
    storeVector(b, loc, call.getResult(0), out);
  });
}

std::string numbered(int number) { return std::string("exponentials_").append(std::to_string(number)); }

struct Context : mlir::MLIRContext {
  Context() : mlir::MLIRContext(Threading::DISABLED) {
    loadDialect<mlir::arith::ArithDialect, mlir::func::FuncDialect, mlir::LLVM::LLVMDialect, mlir::math::MathDialect>();
  }
};

/// A module with the stages of these numbers.
mlir::OwningOpRef<mlir::ModuleOp> moduleOf(Context &context, llvm::ArrayRef<int> stages) {
  auto module = mlir::OwningOpRef<mlir::ModuleOp>(mlir::ModuleOp::create(mlir::UnknownLoc::get(&context)));
  mlir::func::FuncOp exponential = addExponential(*module);
  for (int stage : stages)
    addExponentials(*module, numbered(stage), exponential);
  return module;
}

/// An object of this many stages, made by as many threads.
Object compiled(int stages, unsigned threads) {
  Context context;
  auto module = moduleOf(context, llvm::to_vector(llvm::seq(stages)));
  CodegenOptions options;
  options.threads = threads;
  return llvm::cantFail(compileToObject(*module, Target::host(), options));
}

void expectExponentials(LoadedObject &loaded, const std::string &name) {
  auto run = reinterpret_cast<StageFn>(llvm::cantFail(loaded.lookup(name)));
  std::array<float, 12> in, out;
  for (int i = 0; i < 12; ++i)
    in[i] = float(i);
  out.fill(-1);
  std::array<void *, 2> buffers = {in.data(), out.data()};
  run(buffers.data(), 0, 1, 3);

  EXPECT_EQ(out[3], -1);
  EXPECT_NEAR(out[4], std::exp(1.0), 1e-6);
  EXPECT_NEAR(out[11], std::exp(2.75), 1e-5);
}

// Tests that a stage function runs exactly the given tasks, each on a separate vector.
TEST(Codegen, RunsTheTasksOfAStage) {
  Object object = compiled(1, /*threads=*/4);
  LoadedObject loaded = llvm::cantFail(loadObject(object));
  expectExponentials(loaded, numbered(0));
}

// Tests that many functions become an archive of parts, which are compiled in parallel. Each part has the data and the
// private functions that it uses, and the bytes do not depend on the number of threads.
TEST(Codegen, CutsLargeModulesIntoParts) {
  constexpr int kStages = 300;
  Object object = compiled(kStages, /*threads=*/4);
  EXPECT_EQ(llvm::identify_magic({object.data(), object.size()}), llvm::file_magic::archive);
  EXPECT_TRUE(object == compiled(kStages, /*threads=*/1));
  LoadedObject loaded = llvm::cantFail(loadObject(object));
  for (int stage : {0, kStages / 2, kStages - 1})
    expectExponentials(loaded, numbered(stage));
}

/// The objects of modules with these stages.
std::vector<Object> objectsOf(llvm::ArrayRef<std::vector<int>> stages) {
  Context context;
  std::vector<mlir::OwningOpRef<mlir::ModuleOp>> modules;
  for (const std::vector<int> &its : stages)
    modules.push_back(moduleOf(context, its));
  mlir::MLIRContext &mlir = *modules.front()->getContext();
  auto moduleOf = [&](size_t number) { return *modules[number]; };
  return llvm::cantFail(compileToObjects(mlir, modules.size(), moduleOf, Target::host()));
}

// Tests that the object of a module is the same whatever modules are compiled with it.
TEST(Codegen, CompilesModulesToSeparateObjects) {
  std::vector<Object> objects = objectsOf({{0, 1}, {}, {2}});
  ASSERT_EQ(objects.size(), 3u);
  EXPECT_TRUE(objects[1].empty());
  EXPECT_TRUE(objects[0] == objectsOf({{0, 1}})[0]);
  EXPECT_TRUE(objects[2] == objectsOf({{2}, {0}, {1}})[0]);
  LoadedObject loaded =
      llvm::cantFail(loadObjects({{objects[0].data(), objects[0].size()}, {objects[2].data(), objects[2].size()}}));
  for (int stage : {0, 1, 2})
    expectExponentials(loaded, numbered(stage));
}

} // namespace
} // namespace sluice::cpu
