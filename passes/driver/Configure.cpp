#include "passes/driver/Configure.h"

#include "ir/Dialect.h"
#include "ir/Module.h"
#include "ir/Target.h"
#include "passes/Nearest.h"
#include "passes/Obstacle.h"
#include "passes/backend/TargetDescription.h"
#include "passes/driver/OptionTable.h"
#include "passes/driver/OptionValues.h"
#include "passes/driver/PassTable.h"
#include "passes/train/VerifyInput.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/TargetParser/X86TargetParser.h"

using namespace mlir;

namespace sluice::passes {

/// The phases whose dumps can be compiled further.
static llvm::SmallVector<llvm::StringRef> resumablePhases() {
  llvm::SmallVector<llvm::StringRef> names;
  for (const Phase &phase : allPhases())
    if (phase.canResume)
      names.push_back(phase.name);
  return names;
}

/// Each value must be valid by itself.
static llvm::Error checkValues(const CompileOptions &options) {
  for (const Option &option : allOptions())
    if (std::string reason = invalidValue(options, option); !reason.empty())
      return refuse(Obstacle::Usage, (option.flag.empty() ? option.name : option.flag) + ": " + reason);
  return llvm::Error::success();
}

/// Checks that the CPU exists and that the host's backend can compile for it.
static llvm::Error checkCpu(const CompileOptions &options, const sluice_backend_compile &host) {
  llvm::StringRef cpu = llvm::StringRef(options.target_cpu).split(':').first;
  if (cpu == "native" || llvm::X86::parseArchX86(cpu, /*Only64Bit=*/true) != llvm::X86::CK_None)
    return describeTarget(host, host, options).takeError();
  llvm::SmallVector<llvm::StringRef> known{"native"};
  llvm::X86::fillValidCPUArchList(known, /*Only64Bit=*/true);
  return refuse(Obstacle::Usage, "there is no CPU '" + cpu + "'" + didYouMean(cpu, known));
}

static llvm::Error checkPhase(llvm::StringRef phase) {
  std::vector<llvm::StringRef> names = phasesToStopAt();
  if (phase.empty() || llvm::is_contained(names, phase))
    return llvm::Error::success();
  return refuse(Obstacle::Usage, "there is no phase '" + phase + "'" + didYouMean(phase, names) + "; the phases are " +
                                     llvm::join(names, ", "));
}

/// The error of an option whose effect is part of the dump.
static llvm::Error isFixed(llvm::StringRef option, llvm::StringRef phase, const llvm::Twine &what) {
  return refuse(Obstacle::Usage, "cannot apply " + option + " to a dump of phase '" + phase + "', which already has " +
                                     what + "; leave out " + option + ", or compile the original model");
}

/// The error of an option that needs several replicas.
static llvm::Error isForReplicas(llvm::StringRef option) {
  return refuse(Obstacle::Usage, option + " applies to replicas, and there is one; add --replicas N");
}

/// The phase to resume after: the requested phase, or that of the module.
static llvm::Expected<std::string> startPhase(ModuleOp module, const CompileOptions &options,
                                              const PhaseRange &phases) {
  ir::ModelOp model = ir::findModel(module);
  std::string phase = !phases.from.empty() ? phases.from : model ? model.getPhase().str() : "model";
  if (llvm::Error error = checkPhase(phase)) {
    Obstacle::Kind kind = phases.from.empty() ? Obstacle::Invalid : Obstacle::Usage; // of the model, or of the option
    return withKind(kind, std::move(error));
  }
  if (!llvm::is_contained(resumablePhases(), phase))
    return refuse(phases.from.empty() ? Obstacle::Invalid : Obstacle::Usage,
                  "a dump of phase '" + phase + "' cannot be resumed from; those of " +
                      llvm::join(resumablePhases(), ", ") + " can");
  if (!options.placement.empty() && (phase == "chosen" || phase == "fused"))
    return refuse(Obstacle::Usage,
                  "cannot place a dump of phase '" + phase + "': it already has its devices; place the original model");
  std::vector<llvm::StringRef> names = phasesToStopAt();
  if (!phases.to.empty() && llvm::find(names, phase) > llvm::find(names, phases.to))
    return refuse(Obstacle::Usage, "phase '" + phases.to + "' comes before '" + phase + "', which the model is in");
  return phase;
}

/// The last phase that an option changes; empty if it changes none.
static llvm::StringRef lastPhaseOf(const Option &option) {
  llvm::StringRef phases = option.phases;
  return phases.rsplit(',').second.empty() ? phases : phases.rsplit(',').second;
}

/// An option that is not kept in the model has no effect on a dump of its last phase, or of a later one.
static llvm::Error checkEffects(llvm::StringRef phase, const CompileOptions &options) {
  for (const Option &option : allOptions()) {
    llvm::StringRef last = lastPhaseOf(option);
    if (option.kept == Kept::Plan && !textOf(options, option).empty() && *findPhase(last) <= *findPhase(phase) &&
        phase != "model")
      return isFixed(option.flag, phase, "passed phase '" + last + "'");
  }
  return llvm::Error::success();
}

/// The capacity and the policy for copies, which later phases do not read.
static llvm::Error checkKept(ModuleOp module, llvm::StringRef phase, const CompileOptions &options) {
  ir::ModelOp model = ir::findModel(module);
  int64_t rows = model ? int64_t(model.getBatch().value_or(model.getCapacity())) : 0;
  if (options.capacity && *options.capacity != rows && phase != "model")
    return isFixed("--batch", phase, rows ? llvm::Twine(rows) + " rows" : llvm::Twine("no batch dimension"));
  if (!options.copies.empty() && phase == "fused")
    return isFixed("--copies", phase, "its copies");
  return llvm::Error::success();
}

static void setCopies(ModuleOp module, llvm::StringRef copies) {
  if (std::optional<ir::CopyPolicy> policy = ir::symbolizeCopyPolicy(copies))
    ir::getModel(module).setCopies(*policy);
}

/// Selects the entry points to compile.
static llvm::Error setEntries(ModuleOp module, llvm::StringRef phase, llvm::ArrayRef<std::string> entries) {
  if (entries.empty())
    return llvm::Error::success();
  auto graphs = module.getOps<ir::GraphOp>();
  if (phase != "model" || graphs.empty())
    return refuse(Obstacle::Usage, "a dump of phase '" + phase + "' has its entry points already");
  llvm::SmallVector<llvm::StringRef> known = (*graphs.begin()).getSelectableEntries();
  for (const std::string &name : entries)
    if (!llvm::is_contained(known, name))
      return refuse(Obstacle::Usage, "the model has no entry point '" + name + "' to compile" +
                                         didYouMean(name, known) + "; it has " + llvm::join(known, ", "));
  llvm::SmallVector<llvm::StringRef> names(entries.begin(), entries.end());
  ir::getModel(module).setEntriesAttr(mlir::Builder(module.getContext()).getStrArrayAttr(names));
  return llvm::Error::success();
}

static llvm::Error checkPrecision(ModuleOp module, llvm::StringRef phase, const CompileOptions &options) {
  std::optional<ir::Precision> precision = precisionOf(options.precision);
  ir::Precision recorded = ir::getPrecision(module);
  if (precision.value_or(recorded) != recorded && phase != "model")
    return isFixed("--precision", phase, "the precision " + ir::stringifyPrecision(recorded));
  if (promotesToF64(options) && precision.value_or(recorded) != ir::Precision::F32)
    return refuse(Obstacle::Usage,
                  "cannot combine --dtype f64 with precision " + ir::stringifyPrecision(precision.value_or(recorded)));
  if (promotesToF64(options) && !options.weights_type.empty())
    return refuse(Obstacle::Usage, "cannot combine --dtype f64 with --weights-type");
  return llvm::Error::success();
}

/// The error of a placement of parts of calls.
static llvm::Error cannotPlace(llvm::StringRef parts, llvm::StringRef supported) {
  return refuse(Obstacle::Unsupported, "cannot choose the devices of " + parts +
                                           ": automatic placement supports only " + supported +
                                           "; leave out --placement, and pin the ops that must not run on the "
                                           "first device");
}

/// Checks the number of replicas and whether they normalize over all rows: from the options, else from the model.
static llvm::Error checkReplicas(ModuleOp module, llvm::StringRef phase, const CompileOptions &options) {
  int64_t recorded = ir::getReplicas(module);
  int64_t replicas = options.replicas.value_or(recorded);
  if (replicas != recorded && phase != "model")
    return isFixed("--replicas", phase,
                   recorded == ir::kReplicasOfLaunch ? "one replica per launched process"
                   : recorded == 1                   ? "one replica"
                                                     : llvm::Twine(recorded) + " replicas");
  const std::string &norm = options.batch_norm;
  if (!norm.empty() && phase != "model")
    return isFixed("--batch-norm", phase, "its batch norm statistics");
  if (!norm.empty() && replicas == 1)
    return isForReplicas("--batch-norm");
  if (options.wire && phase != "model")
    return isFixed("--wire", phase, "a data type of gradient all-reduce");
  if (options.wire && replicas == 1)
    return isForReplicas("--wire");
  if (options.buckets != "auto" && replicas == 1)
    return isForReplicas("--buckets");
  if (!options.placement.empty() && replicas != 1)
    return cannotPlace("replicas", "one replica");
  return llvm::Error::success();
}

static bool normalisesAllRows(ModuleOp module, const CompileOptions &options) {
  ir::ModelOp model = ir::findModel(module);
  return options.batch_norm.empty() ? model && model.getSyncBatchNorm() : options.batch_norm == "sync";
}

/// Checks the number of microbatches per call.
static llvm::Error checkMicrobatches(ModuleOp module, llvm::StringRef phase, const CompileOptions &options) {
  int64_t recorded = ir::getMicrobatches(module), microbatches = options.accumulate.value_or(recorded);
  if (microbatches != recorded && phase != "model")
    return isFixed("--accumulate", phase, recorded == 1 ? "one microbatch" : llvm::Twine(recorded) + " microbatches");
  if (microbatches == 1 || phase == "fused")
    return llvm::Error::success();
  if (normalisesAllRows(module, options))
    return refuse(Obstacle::Unsupported, "cannot combine --accumulate with --batch-norm sync: each microbatch is "
                                         "normalized before the next one runs; use --batch-norm local");
  if (!options.placement.empty())
    return cannotPlace("microbatches", "calls without microbatches");
  return llvm::Error::success();
}

/// Checks whether replicas shard the optimizer state.
static llvm::Error checkZero(ModuleOp module, llvm::StringRef phase, const CompileOptions &options) {
  ir::ModelOp model = ir::findModel(module);
  int64_t recorded = model ? int64_t(model.getZero()) : 0, zero = options.zero.value_or(recorded);
  int64_t replicas = options.replicas.value_or(ir::getReplicas(module));
  if (zero == 2 || zero == 3)
    return refuse(Obstacle::Unsupported, "cannot shard gradients" + llvm::Twine(zero == 3 ? " and parameters" : "") +
                                             " (--zero " + llvm::Twine(zero) +
                                             "): not supported; use --zero 1, which shards the optimizer state");
  if (zero != 0 && zero != 1)
    return refuse(Obstacle::Usage, "--zero: '" + llvm::Twine(zero) + "' is none of 0, 1");
  if (zero != recorded && !llvm::is_contained({"model", "train", "chosen"}, phase))
    return isFixed("--zero", phase, recorded == 1 ? "a sharded optimizer state" : "an unsharded optimizer state");
  if (zero == 1 && replicas == ir::kReplicasOfLaunch)
    return refuse(Obstacle::Unsupported, "cannot combine --zero 1 with --replicas env: the size of a shard depends on "
                                         "the number of replicas; use --replicas N");
  if (zero == 1 && replicas == 1)
    return isForReplicas("--zero 1");
  return llvm::Error::success();
}

/// Checks the number of logical shards of calls, with which the number of replicas changes no bit.
static llvm::Error checkShards(ModuleOp module, llvm::StringRef phase, const CompileOptions &options) {
  int64_t recorded = ir::getLogicalShards(module), shards = options.deterministic.value_or(recorded);
  if (shards != recorded && phase != "model")
    return isFixed("--deterministic", phase,
                   (recorded ? llvm::Twine(recorded) : llvm::Twine("no")) + " logical shards");
  if (shards == 0 && !options.deterministic)
    return llvm::Error::success();
  if (std::string reason = ir::whyNotShared(shards, options.replicas.value_or(ir::getReplicas(module)));
      !reason.empty())
    return refuse(Obstacle::Usage, "cannot apply --deterministic: " + reason);
  if (phase == "fused")
    return llvm::Error::success();
  if (options.accumulate.value_or(ir::getMicrobatches(module)) > 1)
    return refuse(Obstacle::Usage, "cannot combine --deterministic with --accumulate: each logical shard is a "
                                   "microbatch; leave out --accumulate");
  if (ir::ModelOp model = ir::findModel(module); options.zero.value_or(model ? int64_t(model.getZero()) : 0) > 0)
    return refuse(Obstacle::Unsupported, "cannot combine --deterministic with --zero 1: the order in which gradients "
                                         "of shards are added depends on the number of replicas; use --zero 0");
  if (normalisesAllRows(module, options))
    return refuse(Obstacle::Unsupported, "cannot combine --deterministic with --batch-norm sync: each logical shard "
                                         "is normalized before the next one runs; use --batch-norm local");
  if (!options.placement.empty())
    return cannotPlace("logical shards", "calls without logical shards");
  return llvm::Error::success();
}

/// Sets the devices and replicas of the model. There may not be fewer accelerators than in the model, because its types
/// may name them.
static llvm::Error setDevices(ModuleOp module, llvm::StringRef phase, llvm::StringRef list, int64_t replicas,
                              PlacementRequest &placement) {
  ir::DiagnosticText diagnostics(module.getContext());
  FailureOr<ir::Target> written = ir::Target::of(module);
  if (failed(written))
    return errorOf(diagnostics);
  if (list.empty() && replicas == written->replicas())
    return llvm::Error::success();
  auto devices = list.empty() ? written->str() : takeCaps(list, placement);
  if (!devices)
    return devices.takeError();
  auto all = ir::Target::parse(*devices);
  if (!all)
    return withKind(Obstacle::Usage, all.takeError());
  auto target = all->shareAmong(replicas);
  if (!target)
    return withKind(Obstacle::Usage, target.takeError());
  if (target->accelerators() < written->accelerators())
    return refuse(Obstacle::Unsupported, "cannot compile for '" + *devices + "': the model is for " + written->str() +
                                             ", and this list has fewer accelerators; list at least " +
                                             llvm::Twine(written->accelerators()));
  if (target->accelerators() > written->accelerators() && phase == "fused")
    return isFixed("--devices", phase, "the devices " + written->str());
  if (replicas != written->replicas())
    ir::getModel(module).setReplicas(uint64_t(replicas));
  target->record(module);
  return llvm::Error::success();
}

/// The compile halves for the module's target, the host's first.
static llvm::Expected<std::vector<const sluice_backend_compile *>> backendsFor(ModuleOp module,
                                                                               const BackendFinder &finder) {
  ir::DiagnosticText diagnostics(module.getContext());
  FailureOr<ir::Target> target = ir::Target::of(module);
  if (failed(target))
    return errorOf(diagnostics);
  std::vector<const sluice_backend_compile *> backends;
  for (const ir::TargetDevice &device : target->devices()) {
    auto backend = finder.find(device.backend);
    if (!backend)
      return backend.takeError();
    if (!llvm::is_contained(backends, *backend))
      backends.push_back(*backend);
  }
  return backends;
}

/// Settings must belong to backends of the module's target, which must accept them.
static llvm::Error checkSettings(const CompileOptions &options, const sluice_backend_compile &host,
                                 llvm::ArrayRef<const sluice_backend_compile *> backends) {
  for (const auto &[name, text] : options.backends) {
    auto found = llvm::find_if(backends, [&](const sluice_backend_compile *backend) { return backend->name == name; });
    if (found == backends.end())
      return refuse(Obstacle::Usage, "settings for backend '" + name + "', but the model has no device of it");
    if (llvm::Error error = describeTarget(**found, host, options).takeError())
      return error;
  }
  return llvm::Error::success();
}

static llvm::Error checkInput(ModuleOp module, llvm::StringRef phase, int64_t capacity) {
  ir::DiagnosticText diagnostics(module.getContext());
  if (failed(verifyInput(module, phase, capacity)))
    return errorOf(diagnostics);
  return llvm::Error::success();
}

/// Placement options require a placement to decide; the replicas' link requires replicas; memory limits require a
/// placement or a memory plan.
static llvm::Error checkPlacement(const PlacementRequest &placement, int64_t replicas, llvm::StringRef compileTo) {
  bool hasOtherLinks = llvm::any_of(placement.links, [&](const GivenLink &link) { return !link.isBetweenReplicas(); });
  if (!placement.chooses && (hasOtherLinks || !placement.entry.empty()))
    return refuse(Obstacle::Usage, llvm::Twine(hasOtherLinks ? "--link" : "--place-entry") +
                                       " applies to automatic placement; add --placement auto or --placement FILE");
  if (!placement.chooses && compileTo == "chosen")
    return refuse(Obstacle::Usage, "phase 'chosen' runs only if the compiler chooses devices; add --placement auto "
                                   "or --placement FILE");
  if (!placement.links.empty() && !hasOtherLinks && replicas == 1)
    return isForReplicas("--link replicas=SPEED");
  bool isPlanned = llvm::is_contained({"", "planned", "lowered", "executable"}, compileTo);
  if (!placement.chooses && !placement.caps.empty() && !isPlanned)
    return refuse(Obstacle::Usage, "cannot check the memory limits in --devices: memory is planned in phase "
                                   "'planned', after '" +
                                       compileTo + "'; leave out the limits, or compile further");
  return llvm::Error::success();
}

/// Checks the options of replicas, microbatches and shards.
static llvm::Error checkShares(ModuleOp module, llvm::StringRef phase, const CompileOptions &options) {
  if (llvm::Error error = checkReplicas(module, phase, options))
    return error;
  if (llvm::Error error = checkMicrobatches(module, phase, options))
    return error;
  if (llvm::Error error = checkZero(module, phase, options))
    return error;
  return checkShards(module, phase, options);
}

/// Records the options of replicas, microbatches and shards in the model.
static void setShares(ModuleOp module, const CompileOptions &options) {
  if (!options.batch_norm.empty())
    ir::getModel(module).setSyncBatchNorm(options.batch_norm == "sync");
  if (options.wire)
    ir::getModel(module).setWire(precisionOf(options.wire));
  if (options.accumulate)
    ir::getModel(module).setMicrobatches(uint64_t(*options.accumulate));
  if (options.zero)
    ir::getModel(module).setZero(uint64_t(*options.zero));
  if (options.deterministic)
    ir::getModel(module).setLogicalShards(uint64_t(*options.deterministic));
}

/// Checks the backends of the target against the options that concern them.
static llvm::Error checkTarget(ModuleOp module, const CompileOptions &options, const BackendFinder &finder,
                               std::vector<const sluice_backend_compile *> &backends) {
  if (llvm::Error error = backendsFor(module, finder).moveInto(backends))
    return error;
  return checkSettings(options, *finder.host, backends);
}

std::vector<llvm::StringRef> phasesToStopAt() {
  std::vector<llvm::StringRef> names = phaseNames().vec();
  names.emplace_back("executable");
  return names;
}

llvm::Expected<Configured> configure(ModuleOp module, const CompileOptions &options, const PhaseRange &phases,
                                     const BackendFinder &backends) {
  Configured result;
  if (llvm::Error error = checkValues(options))
    return error;
  if (llvm::Error error = checkCpu(options, *backends.host))
    return error;
  if (llvm::Error error = checkPhase(phases.to))
    return error;
  if (llvm::Error error = startPhase(module, options, phases).moveInto(result.phase))
    return error;
  if (llvm::Error error = checkEffects(result.phase, options))
    return error;
  if (llvm::Error error = checkKept(module, result.phase, options))
    return error;
  if (llvm::Error error = checkPrecision(module, result.phase, options))
    return error;
  if (llvm::Error error = checkShares(module, result.phase, options))
    return error;
  if (llvm::Error error = placementRequestOf(options).moveInto(result.placement))
    return error;
  result.replicas = options.replicas.value_or(ir::getReplicas(module));
  if (llvm::Error error = setDevices(module, result.phase, options.devices, result.replicas, result.placement))
    return error;
  setShares(module, options);
  if (llvm::Error error = checkPlacement(result.placement, result.replicas, phases.to))
    return error;
  setCopies(module, options.copies.empty() && result.placement.chooses ? "insert" : options.copies);
  if (llvm::Error error = setEntries(module, result.phase, options.entries))
    return error;
  if (llvm::Error error = checkInput(module, result.phase, options.capacity.value_or(0)))
    return error;
  if (llvm::Error error = checkTarget(module, options, backends, result.backends))
    return error;
  return result;
}

} // namespace sluice::passes
