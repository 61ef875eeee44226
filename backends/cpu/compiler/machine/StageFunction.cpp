#include "backends/cpu/compiler/machine/StageFunction.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace sluice::cpu {

using namespace mlir;

StageFunction StageFunction::create(const StageModule &into, llvm::StringRef name, Location loc) {
  MLIRContext *context = loc.getContext();
  context->loadDialect<arith::ArithDialect, func::FuncDialect, LLVM::LLVMDialect, scf::SCFDialect,
                       vector::VectorDialect>();

  OpBuilder builder = OpBuilder::atBlockEnd(ModuleOp(into.module).getBody());
  Type i64 = builder.getI64Type();
  Type pointer = LLVM::LLVMPointerType::get(context);
  StageFunction stage;
  stage.hasBody = into.hasBodies;
  stage.func = builder.create<func::FuncOp>(loc, name, builder.getFunctionType({pointer, i64, i64, i64}, {}));
  Block *entry = stage.func.addEntryBlock();
  stage.rows = entry->getArgument(1);
  stage.begin = entry->getArgument(2);
  stage.end = entry->getArgument(3);
  builder.setInsertionPointToEnd(entry);
  builder.create<func::ReturnOp>(loc);
  return stage;
}

Value StageFunction::buffer(int64_t i) {
  Value &address = loaded[i];
  if (address)
    return address;
  Block &entry = func.getBody().front();
  OpBuilder builder = OpBuilder::atBlockBegin(&entry);
  Type pointer = LLVM::LLVMPointerType::get(func.getContext());
  Value entryOfTable = builder.create<LLVM::GEPOp>(func.getLoc(), pointer, pointer, entry.getArgument(0),
                                                   ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(i)});
  address = builder.create<LLVM::LoadOp>(func.getLoc(), pointer, entryOfTable);
  return address;
}

Value StageFunction::scratch(VectorType type, int64_t count) {
  Value &address = scratches[{type, count}];
  if (!address)
    address = stack(type, count);
  return address;
}

Value StageFunction::stack(Type element, int64_t count) {
  constexpr unsigned kCacheLine = 64;
  OpBuilder builder = OpBuilder::atBlockBegin(&func.getBody().front());
  Value number = builder.create<arith::ConstantIntOp>(func.getLoc(), count, 64);
  Type pointer = LLVM::LLVMPointerType::get(func.getContext());
  return builder.create<LLVM::AllocaOp>(func.getLoc(), pointer, element, number, kCacheLine);
}

OpBuilder StageFunction::bodyBuilder() { return OpBuilder(func.getBody().front().getTerminator()); }

void StageFunction::forEachTask(llvm::function_ref<void(OpBuilder &, Value)> body) {
  if (!hasBody)
    return;
  OpBuilder builder = bodyBuilder();
  Value one = builder.create<arith::ConstantIntOp>(func.getLoc(), 1, 64);
  auto loop = builder.create<scf::ForOp>(func.getLoc(), begin, end, one);
  OpBuilder inner(loop.getBody()->getTerminator());
  body(inner, loop.getInductionVar());
}

} // namespace sluice::cpu
