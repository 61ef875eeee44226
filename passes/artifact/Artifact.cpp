#include "passes/artifact/Artifact.h"
#include "runtime/plan/ArtifactChecksum.h"
#include "runtime/plan/WritePlan.h"
#include "sluice/runtime/artifact.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
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

/// The table of `sluice_code_section`.
static Constant *addSections(Module &module, ArrayRef<DeviceCode> code) {
  LLVMContext &context = module.getContext();
  auto *type =
      StructType::create(context, {PointerType::getUnqual(context), Type::getInt64Ty(context)}, "sluice_code_section");
  SmallVector<Constant *> sections;
  for (const DeviceCode &item : code) {
    Constant *data = addConstant(module, ConstantDataArray::getString(context, item.blob, /*AddNull=*/false), "code");
    sections.push_back(
        ConstantStruct::get(type, {data, ConstantInt::get(Type::getInt64Ty(context), item.blob.size())}));
  }
  return addConstant(module, ConstantArray::get(ArrayType::get(type, sections.size()), sections), "sections");
}

/// The same checksum as in the runtime.
static uint64_t checksumOf(StringRef plan, const BuiltPlan &built, ArrayRef<DeviceCode> code, StringRef constants) {
  std::vector<sluice_code_section> sections;
  for (const DeviceCode &item : code)
    sections.push_back({item.blob.data(), item.blob.size()});
  sluice_artifact artifact{};
  artifact.plan = plan.data();
  artifact.plan_size = plan.size();
  artifact.num_stages = built.stages.size();
  artifact.constants = constants.data();
  artifact.constants_size = constants.size();
  artifact.sections = sections.data();
  artifact.num_sections = sections.size();
  return runtime::checksumOf(artifact);
}

std::string querySymbol(int64_t variant) {
  return variant == 0 ? "sluice_artifact_query" : "sluice_artifact_query_" + std::to_string(variant);
}

/// The constant that artifact.h describes, and the function that returns its address.
static void buildQuery(Module &module, const BuiltPlan &built, ArrayRef<DeviceCode> code, StringRef constants,
                       const Variant &variant) {
  LLVMContext &context = module.getContext();
  Type *pointer = PointerType::getUnqual(context), *i32 = Type::getInt32Ty(context), *i64 = Type::getInt64Ty(context);
  auto *stageType = FunctionType::get(Type::getVoidTy(context), {pointer, i64, i64, i64}, false);
  SmallVector<Constant *> stages;
  for (const std::string &symbol : built.stages)
    stages.push_back(cast<Constant>(module.getOrInsertFunction(symbol, stageType).getCallee()));
  Constant *table = addConstant(module, ConstantArray::get(ArrayType::get(pointer, stages.size()), stages), "stages");
  std::string plan = runtime::writePlan(built.plan);
  Constant *text = addConstant(module, ConstantDataArray::getString(context, plan, /*AddNull=*/false), "plan");
  Constant *sections = addSections(module, code);
  Constant *data =
      constants.empty()
          ? cast<Constant>(ConstantPointerNull::get(cast<PointerType>(pointer)))
          : addConstant(module, ConstantDataArray::getString(context, constants, /*AddNull=*/false), "constants");
  auto *queryType = FunctionType::get(pointer, false);
  Constant *next =
      variant.isLast
          ? ConstantPointerNull::get(cast<PointerType>(pointer))
          : cast<Constant>(module.getOrInsertFunction(querySymbol(variant.number + 1), queryType).getCallee());
  auto *type = StructType::create(
      context, {i32, i32, pointer, i64, pointer, i64, pointer, i64, pointer, i64, i64, pointer}, "sluice_artifact");
  Constant *artifact = addConstant(
      module,
      ConstantStruct::get(type,
                          {ConstantInt::get(i32, sizeof(sluice_artifact)), ConstantInt::get(i32, SLUICE_ARTIFACT_ABI),
                           text, ConstantInt::get(i64, plan.size()), table, ConstantInt::get(i64, stages.size()), data,
                           ConstantInt::get(i64, constants.size()), sections, ConstantInt::get(i64, code.size()),
                           ConstantInt::get(i64, checksumOf(plan, built, code, constants)), next}),
      "artifact");
  auto *query = Function::Create(queryType, GlobalValue::ExternalLinkage, querySymbol(variant.number), module);
  IRBuilder<>(BasicBlock::Create(context, "entry", query)).CreateRet(artifact);
}

Expected<std::string> emitArtifact(const BuiltPlan &built, ArrayRef<DeviceCode> code, StringRef constants,
                                   const Variant &variant) {
  InitializeNativeTarget();
  InitializeNativeTargetAsmPrinter();
  std::string triple = sys::getDefaultTargetTriple(), message;
  const Target *target = TargetRegistry::lookupTarget(triple, message);
  if (!target)
    return createStringError(inconvertibleErrorCode(), message);
  // Data, and a function that returns an address: there is nothing to optimize.
  std::unique_ptr<TargetMachine> machine(
      target->createTargetMachine(triple, "", "", TargetOptions(), Reloc::PIC_, std::nullopt, CodeGenOptLevel::None));
  LLVMContext context;
  Module module("artifact", context);
  module.setTargetTriple(triple);
  module.setDataLayout(machine->createDataLayout());
  buildQuery(module, built, code, constants, variant);
  SmallString<0> object;
  raw_svector_ostream os(object);
  legacy::PassManager manager;
  if (machine->addPassesToEmitFile(manager, os, nullptr, CodeGenFileType::ObjectFile))
    return createStringError(inconvertibleErrorCode(), "the target emits no object files");
  manager.run(module);
  return object.str().str();
}

} // namespace sluice::passes
