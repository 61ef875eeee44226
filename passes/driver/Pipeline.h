// The compiler as a sequence of named phases, from a model to object code. PassTable.h lists them with their passes.
#pragma once

#include "ir/Dialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "passes/analysis/CostModel.h"
#include "passes/artifact/Artifact.h"
#include "passes/assign/search/TargetCosts.h"
#include "passes/backend/Backend.h"
#include "passes/kernel/SharedKernels.h"
#include "passes/schedule/BucketCollectives.h"
#include "runtime/plan/CommunicationForecast.h"
#include "sluice/backend/compile.h"
#include "sluice/compile_options.h"
#include <functional>
#include <optional>
#include <string>

namespace sluice::passes {

class KernelCache;
class KnownFusions;
struct PreparedKernels;

/// Inputs of the pipeline other than the module, the options and the services.
struct PipelineInputs {
  std::vector<const sluice_backend_compile *> backends; // by name, for the module's target; required from `placed` on
  std::string compileFrom = "model";                    // the phase that the module is in
  std::string compileTo = "lowered";                    // the phase to stop after
  std::string kernelTexts;   // folder for readable texts of kernels, which `lowered` creates; empty: none
  std::string backendFolder; // where backends were found; kept in plans for several devices
  std::string dataPath;      // where the model's default data was found; empty: look up by name
  Variant variant;           // number of the artifact
  std::map<std::string, int64_t> memoryLimits = {}; // bytes, by device as in --devices; checked in `planned`
  CostModel costs;                                  // for scheduling, unless a service finds them
  /// Buckets per kind, for the optimizer's shards; 0: one bucket per shard; none: by choose-shard-buckets, or 1.
  std::optional<int64_t> shardBuckets = {};
  bool reuseMemory = true;   // off: every value keeps its own buffer, for inspection
  bool verifies = true;      // verify the IR after each phase
  bool verifiesEach = false; // verify the IR and all invariants after each pass
  /// Prepared kernels shared by several compilations of one model and target. Only for compilations that stop before
  /// `lowered`, because a session lacks kernels that another session prepared. Null: nothing is shared.
  PreparedKernels *prepared = nullptr;
  /// Fusion groups shared by several compilations of one model and target. Null: nothing is shared.
  KnownFusions *fusions = nullptr;
  /// Kernels shared by all compilations that reach `lowered`. Null: nothing is shared, and a backend lowers its kernels
  /// together.
  KernelCache *kernels = nullptr;
  /// Kernels shared with other processes, in addition to `kernels`. Null: no folder is used.
  KernelFolder *kernelFolder = nullptr;
};

/// Callbacks: external decisions, costs and data, and observers. All are optional.
struct PipelineServices {
  /// Chooses the devices of ops and states of a module in phase `train` that the user left open, and records them
  /// (passes/assign/ChosenDevices.h). Returns the costs that the choice is based on. Without it, phase `chosen` is
  /// skipped.
  std::function<mlir::FailureOr<CostModel>(mlir::ModuleOp)> chooseDevices = {};
  /// The costs of the target's devices, for scheduling, and for bucketing and predicting the collectives of replicas.
  std::function<mlir::FailureOr<TargetCosts>(mlir::ModuleOp)> costsOf = {};
  /// The initial data of states, for phase `lowered`.
  std::function<mlir::FailureOr<InitialValues>(mlir::ModuleOp)> readInitialValues = {};
  /// Called after each pass, and with the name `verify` after the verification of a phase.
  std::function<void(mlir::ModuleOp module, llvm::StringRef phase, llvm::StringRef pass, double seconds)> afterPass =
      {};
  std::function<void(llvm::StringRef phase, double seconds)> afterPhase = {};
};

/// The predicted communication of replicas in consecutive calls of an entry point. It refers to the plan.
struct EntryForecast {
  std::string entry;
  runtime::CommunicationForecast communication;
};

/// The result of `lowered`: the object files that an artifact is linked from, and their plan. `planned` returns the
/// plan alone, without device code.
struct Lowered {
  std::vector<std::string> objects;
  runtime::Plan plan;
  InitialValues values;                     // of states
  std::optional<TargetCosts> costs;         // if a service found them
  std::vector<FunctionNeeds> functions;     // of device code, as reported by its backends
  std::vector<EntryForecast> communication; // of the plan's entry points with communication
  std::optional<LinkCosts> replicaLink;     // used for this prediction
  SharedCounts shared;                      // of kernels that can be shared
};

/// The names of the phases, in order.
llvm::ArrayRef<llvm::StringRef> phaseNames();

/// Runs the phases after `compileFrom` up to and including `compileTo`. Reports diagnostics on failure.
mlir::FailureOr<Lowered> runPipeline(mlir::ModuleOp module, const CompileOptions &options, const PipelineInputs &inputs,
                                     const PipelineServices &services = {});

} // namespace sluice::passes
