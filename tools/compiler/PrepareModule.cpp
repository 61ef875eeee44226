#include "tools/compiler/PrepareModule.h"

#include "ir/Dialect.h"
#include "ir/Module.h"
#include "ir/Target.h"
#include "passes/driver/PassTable.h"
#include "passes/train/VerifyInput.h"
#include "tools/compiler/Backends.h"
#include "tools/compiler/Diagnostics.h"
#include "tools/compiler/placement/Placement.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/TargetParser/X86TargetParser.h"

using namespace mlir;

namespace sluice::compiler {

/// The phases whose dumps can be compiled further.
static llvm::SmallVector<llvm::StringRef> resumablePhases() {
  llvm::SmallVector<llvm::StringRef> names;
  for (const passes::Phase &phase : passes::allPhases())
    if (phase.canResume)
      names.push_back(phase.name);
  return names;
}

/// Checks that the CPU exists and that the host's backend can compile for it.
static llvm::Error checkCpu(const std::string &text) {
  llvm::StringRef cpu = llvm::StringRef(text).split(':').first;
  if (cpu == "native" || llvm::X86::parseArchX86(cpu, /*Only64Bit=*/true) != llvm::X86::CK_None)
    return describeTarget(hostBackend(), text).takeError();
  llvm::SmallVector<llvm::StringRef> known{"native"};
  llvm::X86::fillValidCPUArchList(known, /*Only64Bit=*/true);
  return makeError(ExitCode::Usage, "there is no CPU '" + cpu + "'" + didYouMean(cpu, known));
}

static llvm::Error checkPhase(llvm::StringRef phase) {
  std::vector<llvm::StringRef> names = phaseNames();
  if (phase.empty() || llvm::is_contained(names, phase))
    return llvm::Error::success();
  return makeError(ExitCode::Usage, "there is no phase '" + phase + "'" + didYouMean(phase, names) +
                                        "; the phases are " + llvm::join(names, ", "));
}

/// The error of an option whose effect is part of the dump.
static llvm::Error isFixed(llvm::StringRef option, llvm::StringRef phase, const llvm::Twine &what) {
  return makeError(ExitCode::Usage, "cannot apply " + option + " to a dump of phase '" + phase +
                                        "', which already has " + what + "; leave out " + option +
                                        ", or compile the original model");
}

/// The error of an option that needs several replicas.
static llvm::Error isForReplicas(llvm::StringRef option) {
  return makeError(ExitCode::Usage, option + " applies to replicas, and there is one; add --replicas N");
}

/// The phase to resume after: the requested phase, or that of the module.
static llvm::Expected<std::string> startPhase(ModuleOp module, const CompileOptions &options) {
  ir::ModelOp model = ir::findModel(module);
  std::string phase = !options.compileFrom.empty() ? options.compileFrom : model ? model.getPhase().str() : "model";
  if (llvm::Error error = checkPhase(phase))
    return error;
  if (!llvm::is_contained(resumablePhases(), phase))
    return makeError(options.compileFrom.empty() ? ExitCode::Invalid : ExitCode::Usage,
                     "a dump of phase '" + phase + "' cannot be resumed from; those of " +
                         llvm::join(resumablePhases(), ", ") + " can");
  if (options.placement.chooses && (phase == "chosen" || phase == "fused"))
    return makeError(ExitCode::Usage, "cannot place a dump of phase '" + phase +
                                          "': it already has its devices; place the original model");
  std::vector<llvm::StringRef> names = phaseNames();
  if (!options.compileTo.empty() && llvm::find(names, phase) > llvm::find(names, options.compileTo))
    return makeError(ExitCode::Usage,
                     "phase '" + options.compileTo + "' comes before '" + phase + "', which the model is in");
  return phase;
}

static llvm::Error setCopies(ModuleOp module, llvm::StringRef copies) {
  static constexpr llvm::StringRef known[] = {"explicit", "warn", "insert"};
  if (copies.empty())
    return llvm::Error::success();
  std::optional<ir::CopyPolicy> policy = ir::symbolizeCopyPolicy(copies);
  if (!policy)
    return makeError(ExitCode::Usage,
                     "copies are 'explicit', 'warn' or 'insert', not '" + copies + "'" + didYouMean(copies, known));
  ir::getModel(module).setCopies(*policy);
  return llvm::Error::success();
}

/// Selects the entry points to compile.
static llvm::Error setEntries(ModuleOp module, llvm::StringRef phase, llvm::ArrayRef<std::string> entries) {
  if (entries.empty())
    return llvm::Error::success();
  auto graphs = module.getOps<ir::GraphOp>();
  if (phase != "model" || graphs.empty())
    return makeError(ExitCode::Usage, "a dump of phase '" + phase + "' has its entry points already");
  llvm::SmallVector<llvm::StringRef> known = (*graphs.begin()).getSelectableEntries();
  for (const std::string &name : entries)
    if (!llvm::is_contained(known, name))
      return makeError(ExitCode::Usage, "the model has no entry point '" + name + "' to compile" +
                                            didYouMean(name, known) + "; it has " + llvm::join(known, ", "));
  llvm::SmallVector<llvm::StringRef> names(entries.begin(), entries.end());
  ir::getModel(module).setEntriesAttr(mlir::Builder(module.getContext()).getStrArrayAttr(names));
  return llvm::Error::success();
}

/// The requested precision for a model in `phase`; none: as in the model.
static llvm::Expected<std::optional<ir::Precision>> choosePrecision(ModuleOp module, llvm::StringRef phase,
                                                                    const CompileOptions &options) {
  static constexpr llvm::StringRef known[] = {"f32", "bf16", "f16"};
  const std::string &text = options.precision;
  std::optional<ir::Precision> precision = ir::symbolizePrecision(text);
  if (!text.empty() && !precision)
    return makeError(ExitCode::Usage,
                     "a precision is 'f32', 'bf16' or 'f16', not '" + text + "'" + didYouMean(text, known));
  ir::Precision recorded = ir::getPrecision(module);
  if (precision.value_or(recorded) != recorded && phase != "model")
    return isFixed("--precision", phase, "the precision " + ir::stringifyPrecision(recorded));
  if (options.promoteF64 && precision.value_or(recorded) != ir::Precision::F32)
    return makeError(ExitCode::Usage, "cannot combine --dtype f64 with precision " +
                                          ir::stringifyPrecision(precision.value_or(recorded)));
  return precision;
}

/// The error of a placement of parts of calls.
static llvm::Error cannotPlace(llvm::StringRef parts, llvm::StringRef supported) {
  return makeError(ExitCode::Unsupported, "cannot choose the devices of " + parts +
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
  const std::string &norm = options.batchNorm;
  if (!norm.empty() && norm != "local" && norm != "sync")
    return makeError(ExitCode::Usage,
                     "--batch-norm is local or sync, not '" + norm + "'" + didYouMean(norm, {"local", "sync"}));
  if (!norm.empty() && phase != "model")
    return isFixed("--batch-norm", phase, "its batch norm statistics");
  if (!norm.empty() && replicas == 1)
    return isForReplicas("--batch-norm");
  if (!options.wire.empty() && options.wire != "f32" && options.wire != "bf16")
    return makeError(ExitCode::Usage,
                     "--wire is f32 or bf16, not '" + options.wire + "'" + didYouMean(options.wire, {"f32", "bf16"}));
  if (!options.wire.empty() && phase != "model")
    return isFixed("--wire", phase, "a data type of gradient all-reduce");
  if (!options.wire.empty() && replicas == 1)
    return isForReplicas("--wire");
  if (options.buckets && replicas == 1)
    return isForReplicas("--buckets");
  if (options.placement.chooses && replicas != 1)
    return cannotPlace("replicas", "one replica");
  return llvm::Error::success();
}

static bool normalisesAllRows(ModuleOp module, const CompileOptions &options) {
  ir::ModelOp model = ir::findModel(module);
  return options.batchNorm.empty() ? model && model.getSyncBatchNorm() : options.batchNorm == "sync";
}

/// Checks the number of microbatches per call.
static llvm::Error checkMicrobatches(ModuleOp module, llvm::StringRef phase, const CompileOptions &options) {
  int64_t recorded = ir::getMicrobatches(module), microbatches = options.accumulate.value_or(recorded);
  if (microbatches != recorded && phase != "model")
    return isFixed("--accumulate", phase, recorded == 1 ? "one microbatch" : llvm::Twine(recorded) + " microbatches");
  if (microbatches == 1 || phase == "fused")
    return llvm::Error::success();
  if (normalisesAllRows(module, options))
    return makeError(ExitCode::Unsupported, "cannot combine --accumulate with --batch-norm sync: each microbatch is "
                                            "normalized before the next one runs; use --batch-norm local");
  if (options.placement.chooses)
    return cannotPlace("microbatches", "calls without microbatches");
  return llvm::Error::success();
}

/// Checks whether replicas shard the optimizer state.
static llvm::Error checkZero(ModuleOp module, llvm::StringRef phase, const CompileOptions &options) {
  ir::ModelOp model = ir::findModel(module);
  int64_t recorded = model ? int64_t(model.getZero()) : 0, zero = options.zero.value_or(recorded);
  int64_t replicas = options.replicas.value_or(ir::getReplicas(module));
  if (zero == 2 || zero == 3)
    return makeError(ExitCode::Unsupported, "cannot shard gradients" + llvm::Twine(zero == 3 ? " and parameters" : "") +
                                                " (--zero " + llvm::Twine(zero) +
                                                "): not supported; use --zero 1, which shards the optimizer state");
  if (zero != 0 && zero != 1)
    return makeError(ExitCode::Usage, "--zero is 0 or 1, not " + llvm::Twine(zero));
  if (zero != recorded && !llvm::is_contained({"model", "train", "chosen"}, phase))
    return isFixed("--zero", phase, recorded == 1 ? "a sharded optimizer state" : "an unsharded optimizer state");
  if (zero == 1 && replicas == ir::kReplicasOfLaunch)
    return makeError(ExitCode::Unsupported,
                     "cannot combine --zero 1 with --replicas env: the size of a shard depends on "
                     "the number of replicas; use --replicas N");
  if (zero == 1 && replicas == 1)
    return isForReplicas("--zero 1");
  return llvm::Error::success();
}

/// Checks the number of logical shards of calls, with which the number of replicas changes no bit.
static llvm::Error checkShards(ModuleOp module, llvm::StringRef phase, const CompileOptions &options) {
  int64_t recorded = ir::getLogicalShards(module), shards = options.shards.value_or(recorded);
  if (shards != recorded && phase != "model")
    return isFixed("--deterministic", phase,
                   (recorded ? llvm::Twine(recorded) : llvm::Twine("no")) + " logical shards");
  if (shards == 0 && !options.shards)
    return llvm::Error::success();
  if (std::string reason = ir::whyNotShared(shards, options.replicas.value_or(ir::getReplicas(module)));
      !reason.empty())
    return makeError(ExitCode::Usage, "cannot apply --deterministic: " + reason);
  if (phase == "fused")
    return llvm::Error::success();
  if (options.accumulate.value_or(ir::getMicrobatches(module)) > 1)
    return makeError(ExitCode::Usage, "cannot combine --deterministic with --accumulate: each logical shard is a "
                                      "microbatch; leave out --accumulate");
  if (ir::ModelOp model = ir::findModel(module); options.zero.value_or(model ? int64_t(model.getZero()) : 0) > 0)
    return makeError(ExitCode::Unsupported,
                     "cannot combine --deterministic with --zero 1: the order in which gradients "
                     "of shards are added depends on the number of replicas; use --zero 0");
  if (normalisesAllRows(module, options))
    return makeError(ExitCode::Unsupported, "cannot combine --deterministic with --batch-norm sync: each logical shard "
                                            "is normalized before the next one runs; use --batch-norm local");
  if (options.placement.chooses)
    return cannotPlace("logical shards", "calls without logical shards");
  return llvm::Error::success();
}

/// Sets the devices and replicas of the model. There may not be fewer accelerators than in the model, because its types
/// may name them.
static llvm::Error setDevices(ModuleOp module, llvm::StringRef list, int64_t replicas, PlacementRequest &placement) {
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
    return withCode(ExitCode::Usage, all.takeError());
  auto target = all->shareAmong(replicas);
  if (!target)
    return withCode(ExitCode::Usage, target.takeError());
  if (target->accelerators() < written->accelerators())
    return makeError(ExitCode::Unsupported, "cannot compile for '" + *devices + "': the model is for " +
                                                written->str() +
                                                ", and this list has fewer accelerators; list at least " +
                                                llvm::Twine(written->accelerators()));
  if (replicas != written->replicas())
    ir::getModel(module).setReplicas(uint64_t(replicas));
  target->record(module);
  return llvm::Error::success();
}

/// The compile halves for the module's target, the host's first.
static llvm::Expected<std::vector<const sluice_backend_compile *>> backendsFor(ModuleOp module) {
  ir::DiagnosticText diagnostics(module.getContext());
  FailureOr<ir::Target> target = ir::Target::of(module);
  if (failed(target))
    return errorOf(diagnostics);
  std::vector<const sluice_backend_compile *> backends;
  for (const ir::TargetDevice &device : target->devices()) {
    auto backend = findBackend(device.backend);
    if (!backend)
      return backend.takeError();
    if (!llvm::is_contained(backends, *backend))
      backends.push_back(*backend);
  }
  return backends;
}

/// Settings must belong to backends of the module's target, which must accept them.
static llvm::Error checkSettings(const passes::BackendSettings &settings, const std::string &cpu,
                                 llvm::ArrayRef<const sluice_backend_compile *> backends) {
  for (const auto &[name, text] : settings) {
    auto found = llvm::find_if(backends, [&](const sluice_backend_compile *backend) { return backend->name == name; });
    if (found == backends.end())
      return makeError(ExitCode::Usage, "settings for backend '" + name + "', but the model has no device of it");
    if (llvm::Error error = describeTarget(**found, cpu, text).takeError())
      return error;
  }
  return llvm::Error::success();
}

static llvm::Error checkInput(ModuleOp module, llvm::StringRef phase, int64_t capacity) {
  ir::DiagnosticText diagnostics(module.getContext());
  if (failed(passes::verifyInput(module, phase, capacity)))
    return errorOf(diagnostics);
  return llvm::Error::success();
}

/// Placement options require a placement to decide; the replicas' link requires replicas; memory limits require a
/// placement or a memory plan.
static llvm::Error checkPlacement(const PlacementRequest &placement, int64_t replicas, llvm::StringRef compileTo) {
  bool hasOtherLinks = llvm::any_of(placement.links, [&](const GivenLink &link) { return !link.isBetweenReplicas(); });
  if (!placement.chooses && (hasOtherLinks || !placement.entry.empty()))
    return makeError(ExitCode::Usage, llvm::Twine(hasOtherLinks ? "--link" : "--place-entry") +
                                          " applies to automatic placement; add --placement auto or --placement FILE");
  if (!placement.chooses && compileTo == "chosen")
    return makeError(ExitCode::Usage, "phase 'chosen' runs only if the compiler chooses devices; add --placement auto "
                                      "or --placement FILE");
  if (!placement.links.empty() && !hasOtherLinks && replicas == 1)
    return isForReplicas("--link replicas=SPEED");
  bool isPlanned = llvm::is_contained({"", "planned", "lowered", "executable"}, compileTo);
  if (!placement.chooses && !placement.caps.empty() && !isPlanned)
    return makeError(ExitCode::Usage, "cannot check the memory limits in --devices: memory is planned in phase "
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
  if (!options.batchNorm.empty())
    ir::getModel(module).setSyncBatchNorm(options.batchNorm == "sync");
  if (!options.wire.empty())
    ir::getModel(module).setWire(ir::symbolizePrecision(options.wire));
  if (options.accumulate)
    ir::getModel(module).setMicrobatches(uint64_t(*options.accumulate));
  if (options.zero)
    ir::getModel(module).setZero(uint64_t(*options.zero));
  if (options.shards)
    ir::getModel(module).setLogicalShards(uint64_t(*options.shards));
}

llvm::Expected<PreparedModule> prepareModule(ModuleOp module, const CompileOptions &options) {
  if (llvm::Error error = checkCpu(options.cpu))
    return error;
  if (llvm::Error error = checkPhase(options.compileTo))
    return error;
  auto from = startPhase(module, options);
  if (!from)
    return from.takeError();
  auto precision = choosePrecision(module, *from, options);
  if (!precision)
    return precision.takeError();
  if (llvm::Error error = checkShares(module, *from, options))
    return error;
  PlacementRequest placement = options.placement;
  int64_t replicas = options.replicas.value_or(ir::getReplicas(module));
  if (llvm::Error error = setDevices(module, options.devices, replicas, placement))
    return error;
  setShares(module, options);
  if (llvm::Error error = checkPlacement(placement, replicas, options.compileTo))
    return error;
  if (llvm::Error error = setCopies(module, options.copies.empty() && placement.chooses ? "insert" : options.copies))
    return error;
  if (llvm::Error error = setEntries(module, *from, options.entries))
    return error;
  if (llvm::Error error = checkInput(module, *from, options.capacity))
    return error;
  auto backends = backendsFor(module);
  if (!backends)
    return backends.takeError();
  if (llvm::Error error = checkSettings(options.settings, options.cpu, *backends))
    return error;
  return PreparedModule{std::move(*from), *precision, std::move(placement), replicas, std::move(*backends)};
}

} // namespace sluice::compiler
