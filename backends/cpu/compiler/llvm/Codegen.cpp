#include "backends/cpu/compiler/llvm/Codegen.h"

#include "backends/cpu/compiler/llvm/LowerToLLVM.h"
#include "backends/cpu/compiler/llvm/MachineCode.h"
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
#include "llvm/IR/Module.h"
#include "llvm/IR/OptBisect.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Object/ArchiveWriter.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/Transforms/Utils/Cloning.h"

#include <mutex>
#include <optional>

namespace sluice::cpu {

using namespace mlir;

/// LLVM's names.
static constexpr llvm::StringLiteral kSlowPasses[] = {
    "Loop Strength Reduction", "Post RA top-down list latency scheduler", "X86 Domain Reassignment Pass"};

namespace {
/// Disables passes that take much of the code generation time, without a gain in speed (measured by
/// tools/bench/compile_time, contraction_bench and loops_bench). Loop strength reduction takes half of the time, for
/// addresses that the generators have already made cheap. Scheduling after register allocation takes an eighth; with
/// it, single functions take between 1.5 % less time (gelu) and 2.8 % more (sin). Domain reassignment looks for masks
/// in general registers.
class WithoutSlowPasses : public llvm::OptPassGate {
public:
  bool isEnabled() const override { return true; }
  bool shouldRunPass(StringRef pass, StringRef) override { return !llvm::is_contained(kSlowPasses, pass); }
};
} // namespace

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

/// A copy of a module's public functions, with the data and private functions that they need.
static OwningOpRef<ModuleOp> copyOfPublic(ModuleOp module) {
  OwningOpRef<ModuleOp> copy = ModuleOp::create(module.getLoc());
  for (auto function : module.getOps<func::FuncOp>()) {
    if (function.isPrivate())
      continue;
    copyWhatIsUsed(function, module, *copy);
    OpBuilder::atBlockEnd(copy->getBody()).clone(*function);
  }
  return copy;
}

/// Distributes the public functions of modules to parts of about `most` ops, with the data that they need. The parts do
/// not depend on the number of cores.
static std::vector<OwningOpRef<ModuleOp>> cutIntoParts(ArrayRef<ModuleOp> modules, size_t most) {
  std::vector<OwningOpRef<ModuleOp>> parts;
  size_t ops = most; // in the last part
  for (ModuleOp module : modules) {
    for (auto function : llvm::make_early_inc_range(module.getOps<func::FuncOp>())) {
      if (function.isPrivate())
        continue;
      if (ops >= most) {
        parts.push_back(ModuleOp::create(module.getLoc()));
        ops = 0;
      }
      ops += copyWhatIsUsed(function, module, *parts.back());
      Block *body = parts.back()->getBody();
      function->moveBefore(body, body->end());
    }
  }
  return parts;
}

namespace {
/// The LLVM IR of a part, which shares nothing with other parts.
struct Part {
  WithoutSlowPasses gate;
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

static llvm::Error compilePart(llvm::Module &module, const Target &target, const CodegenOptions &options, Made &made) {
  auto machine = MachineCode::take(target);
  if (!machine)
    return machine.takeError();
  (*machine)->optimize(module);
  if (options.assembly)
    if (llvm::Error error = (*machine)->assemblyOf(*llvm::CloneModule(module)).moveInto(made.assembly))
      return error;
  made.object = (*machine)->objectOf(module);
  MachineCode::giveBack(std::move(*machine));
  return llvm::Error::success();
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

/// Takes the objects of parts, and sets the assembly if requested.
static std::vector<Object> objectsOf(std::vector<Made> &parts, const CodegenOptions &options) {
  std::vector<Object> objects;
  if (options.assembly)
    options.assembly->clear();
  for (Made &part : parts) {
    if (options.assembly)
      *options.assembly += part.assembly;
    objects.push_back(std::move(part.object));
  }
  return objects;
}

/// Makes and lowers the parts in order, in this thread, which alone may use MLIR's context. Other threads run
/// `compileOne` on the parts that are ready.
static llvm::Error forEachPart(MLIRContext &context, size_t count,
                               llvm::function_ref<OwningOpRef<ModuleOp>(size_t number)> partOf,
                               const CodegenOptions &options,
                               llvm::function_ref<llvm::Error(size_t number, llvm::Module &part)> compileOne) {
  registerBuiltinDialectTranslation(context);
  registerLLVMDialectTranslation(context);
  LowerToLLVM lower(context, options.polynomialMath);
  std::vector<std::unique_ptr<Part>> translated(count);
  std::vector<std::string> errors(count);
  auto prepare = [&](size_t number) {
    OwningOpRef<ModuleOp> part = partOf(number);
    translated[number] = part ? translate(*part, lower) : nullptr;
    return bool(translated[number]);
  };
  auto compile = [&](size_t number) {
    std::unique_ptr<Part> part = std::move(translated[number]);
    if (llvm::Error error = compileOne(number, *part->module))
      errors[number] = llvm::toString(std::move(error));
  };
  if (!parallelFor(count, options.threads, prepare, compile))
    return llvm::createStringError("lowering to LLVM failed");
  for (const std::string &error : errors)
    if (!error.empty())
      return llvm::createStringError(error);
  return llvm::Error::success();
}

/// An object for each part; empty if the part has no function.
static llvm::Expected<std::vector<Object>> compileParts(MLIRContext &context, size_t count,
                                                        llvm::function_ref<OwningOpRef<ModuleOp>(size_t number)> partOf,
                                                        const Target &target, const CodegenOptions &options) {
  std::vector<Made> made(count);
  auto compile = [&](size_t number, llvm::Module &part) {
    return part.empty() ? llvm::Error::success() : compilePart(part, target, options, made[number]);
  };
  if (llvm::Error error = forEachPart(context, count, partOf, options, compile))
    return std::move(error);
  return objectsOf(made, options);
}

llvm::Expected<Object> compileToObject(ArrayRef<ModuleOp> modules, const Target &target,
                                       const CodegenOptions &options) {
  constexpr size_t kOps = 2000; // per part: about 0.1 s of code generation
  std::vector<OwningOpRef<ModuleOp>> parts = cutIntoParts(modules, kOps);
  auto partOf = [&](size_t number) { return std::move(parts[number]); };
  auto objects = compileParts(*ModuleOp(modules.front()).getContext(), parts.size(), partOf, target, options);
  if (!objects)
    return objects.takeError();
  return objects->size() == 1 ? std::move(objects->front()) : archiveOf(*objects);
}

llvm::Expected<std::vector<Object>> compileToObjects(MLIRContext &context, size_t count,
                                                     llvm::function_ref<ModuleOp(size_t number)> moduleOf,
                                                     const Target &target, const CodegenOptions &options) {
  auto partOf = [&](size_t number) -> OwningOpRef<ModuleOp> {
    ModuleOp module = moduleOf(number);
    if (!module)
      return nullptr;
    std::vector<OwningOpRef<ModuleOp>> parts = cutIntoParts(module, /*most=*/SIZE_MAX);
    return parts.empty() ? ModuleOp::create(module.getLoc()) : std::move(parts.front());
  };
  return compileParts(context, count, partOf, target, options);
}

llvm::Expected<std::vector<KernelText>> compileToText(ArrayRef<ModuleOp> kernels, const Target &target) {
  std::vector<KernelText> texts(kernels.size());
  std::vector<OwningOpRef<ModuleOp>> parts;
  for (auto [kernel, text] : llvm::zip_equal(kernels, texts)) {
    parts.push_back(copyOfPublic(kernel));
    llvm::raw_string_ostream out(text.vectors);
    parts.back()->print(out, OpPrintingFlags().elideLargeElementsAttrs(64));
    out << '\n';
  }
  auto compile = [&](size_t number, llvm::Module &part) -> llvm::Error {
    auto machine = MachineCode::take(target);
    if (!machine)
      return machine.takeError();
    (*machine)->optimize(part);
    llvm::raw_string_ostream(texts[number].llvmIR) << part;
    return (*machine)->assemblyOf(part, /*hasComments=*/true).moveInto(texts[number].assembly);
  };
  auto partOf = [&](size_t number) { return std::move(parts[number]); };
  if (llvm::Error error = forEachPart(*ModuleOp(kernels.front()).getContext(), parts.size(), partOf, {}, compile))
    return std::move(error);
  return texts;
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

namespace {
/// Only objects are linked. A compiler of IR would need a target machine, whose creation takes most of the linker's time
/// for a small object.
class NoCompiler : public llvm::orc::IRCompileLayer::IRCompiler {
public:
  NoCompiler() : IRCompiler({}) {}
  llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>> operator()(llvm::Module &) override {
    return llvm::createStringError("there is no compiler of IR");
  }
};
} // namespace

/// The data layout of code for this process; found once.
static llvm::Expected<llvm::DataLayout> layoutOfProcess(llvm::orc::JITTargetMachineBuilder &machine) {
  static std::mutex mutex;
  static std::optional<llvm::DataLayout> known;
  std::lock_guard lock(mutex);
  if (known)
    return *known;
  auto layout = machine.getDefaultDataLayoutForTarget();
  if (layout)
    known = *layout;
  return layout;
}

llvm::Expected<LoadedObject> loadObjects(llvm::ArrayRef<llvm::StringRef> objects) {
  initializeNativeTarget();
  llvm::orc::JITTargetMachineBuilder machine{llvm::Triple(llvm::sys::getProcessTriple())};
  auto layout = layoutOfProcess(machine);
  if (!layout)
    return layout.takeError();
  // The objects have no static initializers, for which a platform would be needed.
  auto jit = llvm::orc::LLJITBuilder()
                 .setLinkProcessSymbolsByDefault(false)
                 .setPlatformSetUp(llvm::orc::setUpInactivePlatform)
                 .setJITTargetMachineBuilder(machine)
                 .setDataLayout(*layout)
                 .setCompileFunctionCreator([](const auto &) { return std::make_unique<NoCompiler>(); })
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
