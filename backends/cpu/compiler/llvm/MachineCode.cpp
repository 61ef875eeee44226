// LLVM's O3 mid-level pipeline is omitted on purpose. The generators emit loops that are already tiled, unrolled and
// vectorized. The pipeline would take three times as long as code generation, with no measurable speedup.
#include "backends/cpu/compiler/llvm/MachineCode.h"

#include "backends/cpu/compiler/llvm/MaskedLoads.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Host.h"

#include <mutex>

namespace sluice::cpu {

void initializeNativeTarget() {
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

namespace {
/// Folds address arithmetic and repeated subexpressions, which the generators leave to this step.
class CleanUp {
public:
  explicit CleanUp(llvm::TargetMachine &machine) : builder(&machine) {
    builder.registerModuleAnalyses(modules);
    builder.registerCGSCCAnalyses(callGraph);
    builder.registerFunctionAnalyses(functions);
    builder.registerLoopAnalyses(loops);
    builder.crossRegisterProxies(loops, functions, callGraph, modules);
    llvm::cantFail(builder.parsePassPipeline(
        passes,
        "function(instcombine<no-verify-fixpoint>,simplifycfg,early-cse,loop-mssa(licm<allowspeculation>),dce)"));
  }

  void run(llvm::Module &module) {
    passes.run(module, modules);
    loops.clear();
    functions.clear();
    callGraph.clear();
    modules.clear();
  }

private:
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager callGraph;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder;
  llvm::ModulePassManager passes;
};
} // namespace

static void setFunctionAttributes(llvm::Module &module, const Target &target) {
  for (llvm::Function &function : module) {
    if (function.isDeclaration())
      continue;
    function.addFnAttr(llvm::Attribute::NoUnwind);
    function.addFnAttr("prefer-vector-width", std::to_string(target.vectorBits));
    function.addFnAttr("tune-cpu", target.cpu);
  }
}

struct MachineCode::Parts {
  Parts(const Target &target, std::unique_ptr<llvm::TargetMachine> itsMachine)
      : target(target), machine(std::move(itsMachine)), cleanUp(*machine) {}

  Target target;
  std::unique_ptr<llvm::TargetMachine> machine;
  CleanUp cleanUp;
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream stream{bytes};
  llvm::legacy::PassManager passes; // write an object to the stream
};

MachineCode::MachineCode(std::unique_ptr<Parts> parts) : parts(std::move(parts)) {}
MachineCode::~MachineCode() = default;

namespace {
struct Idle {
  std::mutex mutex;
  std::vector<std::unique_ptr<MachineCode>> machines;
};
} // namespace

static Idle &idle() {
  static Idle machines;
  return machines;
}

static llvm::Error noSuchFiles() {
  return llvm::createStringError("LLVM cannot write this kind of file for the target");
}

llvm::Expected<std::unique_ptr<MachineCode>> MachineCode::take(const Target &target) {
  {
    std::lock_guard lock(idle().mutex);
    std::vector<std::unique_ptr<MachineCode>> &all = idle().machines;
    auto isSame = [&](const std::unique_ptr<MachineCode> &machine) {
      const Target &its = machine->parts->target;
      return its.cpu == target.cpu && its.instructions == target.instructions && its.vectorBits == target.vectorBits;
    };
    if (auto found = llvm::find_if(all, isSame); found != all.end()) {
      std::unique_ptr<MachineCode> taken = std::move(*found);
      all.erase(found);
      return taken;
    }
  }
  auto machine = createTargetMachine(target);
  if (!machine)
    return machine.takeError();
  auto parts = std::make_unique<Parts>(target, std::move(*machine));
  if (parts->machine->addPassesToEmitFile(parts->passes, parts->stream, nullptr, llvm::CodeGenFileType::ObjectFile,
                                          /*DisableVerify=*/true))
    return noSuchFiles();
  return std::unique_ptr<MachineCode>(new MachineCode(std::move(parts)));
}

void MachineCode::giveBack(std::unique_ptr<MachineCode> machine) {
  constexpr size_t kMostIdle = 8;
  std::lock_guard lock(idle().mutex);
  if (idle().machines.size() < kMostIdle)
    idle().machines.push_back(std::move(machine));
}

void MachineCode::optimize(llvm::Module &module) {
  module.setTargetTriple(parts->machine->getTargetTriple().str());
  module.setDataLayout(parts->machine->createDataLayout());
  setFunctionAttributes(module, parts->target);
  parts->cleanUp.run(module);
  loadOnlyWantedRegisters(module, unsigned(parts->target.vectorBits));
}

Object MachineCode::objectOf(llvm::Module &module) {
  parts->passes.run(module);
  return std::exchange(parts->bytes, {});
}

llvm::Expected<std::string> MachineCode::assemblyOf(llvm::Module &module, bool hasComments) {
  llvm::SmallString<0> text;
  llvm::raw_svector_ostream stream(text);
  llvm::legacy::PassManager passes;
  llvm::MCTargetOptions &settings = parts->machine->Options.MCOptions;
  settings.AsmVerbose = hasComments; // on loops and spills
  bool cannot = parts->machine->addPassesToEmitFile(passes, stream, nullptr, llvm::CodeGenFileType::AssemblyFile,
                                                    /*DisableVerify=*/true);
  if (!cannot)
    passes.run(module);
  settings.AsmVerbose = false;
  if (cannot)
    return noSuchFiles();
  return text.str().str();
}

} // namespace sluice::cpu
