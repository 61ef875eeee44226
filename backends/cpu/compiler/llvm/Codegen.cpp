// LLVM's O3 mid-level pipeline is omitted on purpose. The generators emit loops that are already tiled, unrolled and
// vectorized. The pipeline would take three times as long as code generation, with no measurable speedup.
#include "backends/cpu/compiler/llvm/Codegen.h"

#include "backends/cpu/compiler/llvm/LowerToLLVM.h"
#include "backends/cpu/compiler/llvm/MaskedLoads.h"
#include "backends/cpu/compiler/llvm/ParallelFor.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/BinaryFormat/Magic.h"
#include "llvm/ExecutionEngine/Orc/ExecutionUtils.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/OptBisect.h"
#include "llvm/IR/Verifier.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Object/ArchiveWriter.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/Transforms/Scalar.h"
#include "llvm/Transforms/Utils/Cloning.h"

#include <mutex>

namespace sluice::cpu {

using namespace mlir;

namespace {
/// Disables loop strength reduction: it takes half of the code generation time, for addresses that the generators have
/// already made cheap (measured by tools/bench/compile_time, contraction_bench and loops_bench).
class WithoutStrengthReduction : public llvm::OptPassGate {
public:
  bool isEnabled() const override { return true; }
  bool shouldRunPass(StringRef pass, StringRef) override { return pass != reduction->getPassName(); }

private:
  std::unique_ptr<llvm::Pass> reduction{llvm::createLoopStrengthReducePass()};
};
} // namespace

static void initializeNativeTarget() {
  static std::once_flag once;
  std::call_once(once, [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    llvm::InitializeNativeTargetAsmParser();
  });
}

// "+avx2,+fma,...": only the extensions in `target.instructions`. Other features of the CPU are not used.
static std::string featuresOf(const Target &target) {
  llvm::SubtargetFeatures features;
  for (const std::string &name : target.instructions)
    features.AddFeature(name);
  if (target.has("avx512f"))
    features.AddFeature("evex512"); // LLVM's name for AVX-512 with vectors of 512 bits
  return features.getString();
}

static llvm::Expected<std::unique_ptr<llvm::TargetMachine>> createTargetMachine(const Target &target) {
  initializeNativeTarget();
  std::string triple = llvm::sys::getDefaultTargetTriple();
  std::string error;
  const llvm::Target *found = llvm::TargetRegistry::lookupTarget(triple, error);
  if (!found)
    return llvm::createStringError(error);
  llvm::TargetOptions options;
  // vector.fma becomes llvm.fmuladd, which this fuses; a separate multiplication and addition stay separate.
  options.AllowFPOpFusion = llvm::FPOpFusion::Standard;
  std::unique_ptr<llvm::TargetMachine> machine(found->createTargetMachine(triple, "x86-64", featuresOf(target), options,
                                                                          llvm::Reloc::PIC_, std::nullopt,
                                                                          llvm::CodeGenOptLevel::Aggressive));
  if (!machine)
    return llvm::createStringError("LLVM has no code generator for " + triple + " " + target.cpu);
  return std::move(machine);
}

// Folds address arithmetic and repeated subexpressions, which the generators leave to this step.
static void cleanUp(llvm::Module &module, llvm::TargetMachine &machine) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager callGraph;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&machine);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(callGraph);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, callGraph, modules);
  llvm::ModulePassManager passes;
  llvm::cantFail(
      builder.parsePassPipeline(passes, "function(early-cse,instcombine<no-verify-fixpoint>,simplifycfg,early-cse,loop-"
                                        "mssa(licm<allowspeculation>),instcombine<no-verify-fixpoint>,dce)"));
  passes.run(module, modules);
}

static void setFunctionAttributes(llvm::Module &module, const Target &target) {
  for (llvm::Function &function : module) {
    if (function.isDeclaration())
      continue;
    function.addFnAttr(llvm::Attribute::NoUnwind);
    function.addFnAttr("prefer-vector-width", std::to_string(target.vectorBits));
    function.addFnAttr("tune-cpu", target.cpu);
  }
}

static llvm::Expected<llvm::SmallVector<char, 0>> emit(llvm::Module &module, llvm::TargetMachine &machine,
                                                       llvm::CodeGenFileType type) {
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager passes;
  if (machine.addPassesToEmitFile(passes, stream, nullptr, type, /*DisableVerify=*/true))
    return llvm::createStringError("LLVM cannot write this kind of file for the target");
  passes.run(module);
  return bytes;
}

/// Copies the constant data and private functions that `function` uses from `module` to `part`. Returns the number of
/// ops in the function and the copies.
static size_t copyWhatIsUsed(Operation *function, ModuleOp module, ModuleOp part) {
  size_t ops = 0;
  function->walk([&](Operation *op) {
    ++ops;
    StringRef name;
    if (auto use = dyn_cast<LLVM::AddressOfOp>(op))
      name = use.getGlobalName();
    else if (auto call = dyn_cast<func::CallOp>(op))
      name = call.getCallee();
    Operation *used = name.empty() || part.lookupSymbol(name) ? nullptr : module.lookupSymbol(name);
    if (!used)
      return;
    Operation *copy = OpBuilder::atBlockBegin(part.getBody()).clone(*used);
    if (isa<func::FuncOp>(copy))
      copy->setAttr("llvm.linkage", LLVM::LinkageAttr::get(part.getContext(), LLVM::Linkage::Internal));
    ops += copyWhatIsUsed(used, module, part);
  });
  return ops;
}

/// A part for each kernel, with copies of its functions. The module stays as it is.
static std::vector<OwningOpRef<ModuleOp>> copyByKernel(ModuleOp module, ArrayRef<KernelText> kernels) {
  std::vector<OwningOpRef<ModuleOp>> parts;
  for (const KernelText &kernel : kernels) {
    ModuleOp part = *parts.emplace_back(ModuleOp::create(module.getLoc()));
    for (const std::string &name : kernel.functions) {
      Operation *function = module.lookupSymbol(name);
      copyWhatIsUsed(function, module, part);
      OpBuilder::atBlockEnd(part.getBody()).clone(*function);
    }
  }
  return parts;
}

/// Distributes the functions of a module to parts of about equal op counts, with the data that they need. The parts do
/// not depend on the number of cores.
static std::vector<OwningOpRef<ModuleOp>> cutIntoParts(ModuleOp module) {
  constexpr size_t kOps = 2000; // per part: about 0.1 s of code generation
  std::vector<OwningOpRef<ModuleOp>> parts;
  size_t ops = kOps; // in the last part
  for (auto function : llvm::make_early_inc_range(module.getOps<func::FuncOp>())) {
    if (function.isPrivate())
      continue;
    if (ops >= kOps) {
      parts.push_back(ModuleOp::create(module.getLoc()));
      ops = 0;
    }
    ops += copyWhatIsUsed(function, module, *parts.back());
    Block *body = parts.back()->getBody();
    function->moveBefore(body, body->end());
  }
  return parts;
}

using Object = llvm::SmallVector<char, 0>;

namespace {
/// The LLVM IR of a part, which shares nothing with other parts.
struct Part {
  WithoutStrengthReduction gate;
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> module;
};

/// The result of a part.
struct Made {
  Object object;
  std::string assembly;
};
} // namespace

/// Null if the translation fails; MLIR has emitted the reason.
static std::unique_ptr<Part> translate(ModuleOp module, const LowerToLLVM &lower) {
  auto part = std::make_unique<Part>();
  part->context.setOptPassGate(part->gate);
  if (succeeded(lower.run(module)))
    part->module = translateModuleToLLVMIR(module, part->context);
  return part->module ? std::move(part) : nullptr;
}

/// Optimizes a module for the target machine, which it returns.
static llvm::Expected<std::unique_ptr<llvm::TargetMachine>> optimize(llvm::Module &module, const Target &target) {
  auto machine = createTargetMachine(target);
  if (!machine)
    return machine.takeError();
  module.setTargetTriple((*machine)->getTargetTriple().str());
  module.setDataLayout((*machine)->createDataLayout());
  setFunctionAttributes(module, target);
  cleanUp(module, **machine);
  loadOnlyWantedRegisters(module, unsigned(target.vectorBits));
  return machine;
}

static llvm::Error compilePart(llvm::Module &module, const Target &target, const CodegenOptions &options, Made &made) {
  auto machine = optimize(module, target);
  if (!machine)
    return machine.takeError();
  if (options.assembly) {
    auto text = emit(*llvm::CloneModule(module), **machine, llvm::CodeGenFileType::AssemblyFile);
    if (!text)
      return text.takeError();
    made.assembly.assign(text->begin(), text->end());
  }
  return emit(module, **machine, llvm::CodeGenFileType::ObjectFile).moveInto(made.object);
}

static llvm::Expected<Object> archiveOf(ArrayRef<Object> objects) {
  SmallVector<std::string> names;
  for (size_t number = 0; number < objects.size(); ++number)
    names.push_back(std::to_string(number) + ".o");
  std::vector<llvm::NewArchiveMember> members;
  for (auto [object, name] : llvm::zip_equal(objects, names))
    members.emplace_back(llvm::MemoryBufferRef({object.data(), object.size()}, name));
  auto archive = llvm::writeArchiveToBuffer(members, llvm::SymtabWritingMode::NormalSymtab,
                                            llvm::object::Archive::K_GNU, /*Deterministic=*/true, /*Thin=*/false);
  if (!archive)
    return archive.takeError();
  return Object((*archive)->getBufferStart(), (*archive)->getBufferEnd());
}

static llvm::Expected<Object> joined(std::vector<Made> &parts, const CodegenOptions &options) {
  std::vector<Object> objects;
  std::string assembly;
  for (Made &part : parts) {
    assembly += part.assembly;
    objects.push_back(std::move(part.object));
  }
  if (options.assembly)
    *options.assembly = std::move(assembly);
  return objects.size() == 1 ? std::move(objects.front()) : archiveOf(objects);
}

/// Lowers the parts in order, in this thread, which alone may use MLIR's context. Other threads run `compileOne` on the
/// parts that are ready.
static llvm::Error forEachPart(MLIRContext &context, std::vector<OwningOpRef<ModuleOp>> parts,
                               const CodegenOptions &options,
                               llvm::function_ref<llvm::Error(size_t number, llvm::Module &part)> compileOne) {
  registerBuiltinDialectTranslation(context);
  registerLLVMDialectTranslation(context);
  LowerToLLVM lower(context, options.polynomialMath);
  std::vector<std::unique_ptr<Part>> translated(parts.size());
  std::vector<std::string> errors(parts.size());
  auto prepare = [&](size_t number) {
    OwningOpRef<ModuleOp> part = std::move(parts[number]);
    translated[number] = translate(*part, lower);
    return bool(translated[number]);
  };
  auto compile = [&](size_t number) {
    std::unique_ptr<Part> part = std::move(translated[number]);
    if (llvm::Error error = compileOne(number, *part->module))
      errors[number] = llvm::toString(std::move(error));
  };
  if (!parallelFor(parts.size(), options.threads, prepare, compile))
    return llvm::createStringError("lowering to LLVM failed");
  for (const std::string &error : errors)
    if (!error.empty())
      return llvm::createStringError(error);
  return llvm::Error::success();
}

llvm::Expected<Object> compileToObject(ModuleOp module, const Target &target, const CodegenOptions &options) {
  std::vector<OwningOpRef<ModuleOp>> parts = cutIntoParts(module);
  std::vector<Made> made(parts.size());
  auto compile = [&](size_t number, llvm::Module &part) { return compilePart(part, target, options, made[number]); };
  if (llvm::Error error = forEachPart(*module.getContext(), std::move(parts), options, compile))
    return std::move(error);
  return joined(made, options);
}

llvm::Error compileToText(ModuleOp module, const Target &target, MutableArrayRef<KernelText> kernels) {
  std::vector<OwningOpRef<ModuleOp>> parts = copyByKernel(module, kernels);
  for (auto [kernel, part] : llvm::zip_equal(kernels, parts)) {
    llvm::raw_string_ostream out(kernel.vectors);
    part->print(out, OpPrintingFlags().elideLargeElementsAttrs(64));
    out << '\n';
  }
  auto compile = [&](size_t number, llvm::Module &part) -> llvm::Error {
    auto machine = optimize(part, target);
    if (!machine)
      return machine.takeError();
    llvm::raw_string_ostream(kernels[number].llvmIR) << part;
    (*machine)->Options.MCOptions.AsmVerbose = true; // comments on loops and spills
    auto text = emit(part, **machine, llvm::CodeGenFileType::AssemblyFile);
    if (!text)
      return text.takeError();
    kernels[number].assembly.assign(text->begin(), text->end());
    return llvm::Error::success();
  };
  return forEachPart(*module.getContext(), std::move(parts), {}, compile);
}

LoadedObject::LoadedObject(std::unique_ptr<llvm::orc::LLJIT> linker)
    : cause(std::make_unique<llvm::Error>(llvm::Error::success())), jit(std::move(linker)) {
  jit->getExecutionSession().setErrorReporter(
      [cause = cause.get()](llvm::Error error) { *cause = llvm::joinErrors(std::move(*cause), std::move(error)); });
}
LoadedObject::LoadedObject(LoadedObject &&) noexcept = default;
LoadedObject::~LoadedObject() {
  if (cause)
    llvm::consumeError(std::move(*cause));
}

llvm::Expected<void *> LoadedObject::lookup(llvm::StringRef symbol) {
  auto address = jit->lookup(symbol);
  if (!address) {
    llvm::Error reported = std::exchange(*cause, llvm::Error::success());
    return llvm::joinErrors(std::move(reported), address.takeError());
  }
  return address->toPtr<void *>();
}

static llvm::Error addObject(llvm::orc::LLJIT &jit, llvm::StringRef object) {
  auto buffer = llvm::MemoryBuffer::getMemBufferCopy(object);
  if (llvm::identify_magic(buffer->getBuffer()) != llvm::file_magic::archive)
    return jit.addObjectFile(std::move(buffer));
  auto members = llvm::orc::StaticLibraryDefinitionGenerator::Create(jit.getObjLinkingLayer(), std::move(buffer));
  if (!members)
    return members.takeError();
  jit.getMainJITDylib().addGenerator(std::move(*members));
  return llvm::Error::success();
}

llvm::Expected<LoadedObject> loadObjects(llvm::ArrayRef<llvm::StringRef> objects) {
  initializeNativeTarget();
  // The objects have no static initializers, for which a platform would be needed.
  auto jit = llvm::orc::LLJITBuilder()
                 .setLinkProcessSymbolsByDefault(false)
                 .setPlatformSetUp(llvm::orc::setUpInactivePlatform)
                 .create();
  if (!jit)
    return jit.takeError();
  for (llvm::StringRef object : objects)
    if (llvm::Error error = addObject(**jit, object))
      return error;
  for (const char *name : {"libm.so.6", "libc.so.6"}) {
    auto library = llvm::orc::DynamicLibrarySearchGenerator::Load(name, (*jit)->getDataLayout().getGlobalPrefix());
    if (!library)
      return library.takeError();
    (*jit)->getMainJITDylib().addGenerator(std::move(*library));
  }
  return LoadedObject(std::move(*jit));
}

} // namespace sluice::cpu
