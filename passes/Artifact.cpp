#include "passes/Artifact.h"
#include "sluice/runtime/artifact.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/CRC.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Host.h"

using namespace llvm;

namespace sluice::passes {

static GlobalVariable *addConstant(Module &module, Constant *value, StringRef name) {
  auto *global =
      new GlobalVariable(module, value->getType(), /*isConstant=*/true, GlobalValue::InternalLinkage, value, name);
  global->setAlignment(Align(64));
  return global;
}

/// As artifact.h says; there are no constants.
static uint64_t checksumOf(const Plan &plan) {
  char stages[8];
  support::endian::write64le(stages, plan.stages.size());
  return crc32(crc32(arrayRefFromStringRef(plan.json)), arrayRefFromStringRef({stages, sizeof stages}));
}

/// The constant that artifact.h describes, and the function that gives its address.
static void buildQuery(Module &module, const Plan &plan) {
  LLVMContext &context = module.getContext();
  Type *pointer = PointerType::getUnqual(context), *i32 = Type::getInt32Ty(context), *i64 = Type::getInt64Ty(context);
  auto *stageType = FunctionType::get(Type::getVoidTy(context), {pointer, i64, i64, i64}, false);
  SmallVector<Constant *> stages;
  for (const std::string &symbol : plan.stages)
    stages.push_back(cast<Constant>(module.getOrInsertFunction(symbol, stageType).getCallee()));
  Constant *table = addConstant(module, ConstantArray::get(ArrayType::get(pointer, stages.size()), stages), "stages");
  Constant *text = addConstant(module, ConstantDataArray::getString(context, plan.json, /*AddNull=*/false), "plan");
  auto *type =
      StructType::create(context, {i32, i32, pointer, i64, pointer, i64, pointer, i64, i64}, "sluice_artifact");
  Constant *artifact =
      addConstant(module,
                  ConstantStruct::get(
                      type, {ConstantInt::get(i32, sizeof(sluice_artifact)), ConstantInt::get(i32, SLUICE_ARTIFACT_ABI),
                             text, ConstantInt::get(i64, plan.json.size()), table, ConstantInt::get(i64, stages.size()),
                             ConstantPointerNull::get(cast<PointerType>(pointer)), ConstantInt::get(i64, 0),
                             ConstantInt::get(i64, checksumOf(plan))}),
                  "artifact");
  auto *query = Function::Create(FunctionType::get(pointer, false), GlobalValue::ExternalLinkage,
                                 "sluice_artifact_query", module);
  IRBuilder<>(BasicBlock::Create(context, "entry", query)).CreateRet(artifact);
}

Expected<std::string> emitArtifact(const Plan &plan) {
  InitializeNativeTarget();
  InitializeNativeTargetAsmPrinter();
  std::string triple = sys::getDefaultTargetTriple(), message;
  const Target *target = TargetRegistry::lookupTarget(triple, message);
  if (!target)
    return createStringError(inconvertibleErrorCode(), message);
  std::unique_ptr<TargetMachine> machine(target->createTargetMachine(triple, "", "", TargetOptions(), Reloc::PIC_));
  LLVMContext context;
  Module module("artifact", context);
  module.setTargetTriple(triple);
  module.setDataLayout(machine->createDataLayout());
  buildQuery(module, plan);
  SmallString<0> object;
  raw_svector_ostream os(object);
  legacy::PassManager manager;
  if (machine->addPassesToEmitFile(manager, os, nullptr, CodeGenFileType::ObjectFile))
    return createStringError(inconvertibleErrorCode(), "the target emits no object files");
  manager.run(module);
  return object.str().str();
}

} // namespace sluice::passes
