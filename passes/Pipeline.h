// The compiler, from a model to object code, as a sequence of named phases.
#pragma once

#include "ir/Dialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "passes/analysis/CostModel.h"
#include "passes/artifact/Artifact.h"
#include "passes/assign/ChosenDevices.h"
#include "passes/backend/Backend.h"
#include "passes/schedule/BucketCollectives.h"
#include "sluice/backend/compile.h"
#include <functional>
#include <optional>
#include <string>

namespace sluice::passes {

struct PreparedKernels;

struct PipelineOptions {
  std::vector<const sluice_backend_compile *>
      backends;                              // by name, those of the module's target; required from `placed` on
  std::string compileFrom = "model";         // the phase that the module is in
  std::string compileTo = "lowered";         // the phase to stop after
  std::string dumpIrDir;                     // numbered files and a manifest, one file a phase; empty: none
  std::string cpu = "native";                // whose instructions to use
  BackendSettings settings;                  // of backends' own
  std::string temporaries;                   // a folder for code that people read, one of each backend's; empty: none
  std::string backendFolder;                 // where backends were found: kept in plans for several devices
  std::string dataPath;                      // where the model's default data was found; empty: by its name
  InitialValues values;                      // that states begin with
  Variant variant;                           // of the artifact
  CostModel costs;                           // what the order of work is chosen by
  BucketPolicy buckets = BucketPolicy::Auto; // how collectives share
  int64_t shardBuckets = 1;                  // of each kind, that shards of the optimizer go in; 0: each alone
  int64_t capacity = 0;                      // rows of `?`; 0: what the module says
  bool fuse = true;
  bool reuseMemory = true; // off: every value keeps its own bytes, for looking at them afterwards
  bool verifies = true;    // the IR behind each phase, by the rules of its ops
  bool promoteF64 = false;
  std::optional<ir::Precision> precision; // of products of f32; none: what the module says
  /// What backends said of kernels, for several compilations of one model and target that stop before `lowered`, as
  /// kernels that were made before are in no session; null: nothing is kept.
  PreparedKernels *prepared = nullptr;
  /// Where ops and states of a module in phase `train` go that the user has left open.
  ChosenDevices chosen = ChosenDevices();
  std::function<void(llvm::StringRef phase, double seconds)> progress; // after each phase
};

/// What `lowered` gives: the object files that an artifact is linked from, and the plan that they hold. `planned` gives
/// the plan alone, without device code.
struct Lowered {
  std::vector<std::string> objects;
  runtime::Plan plan;
  std::vector<FunctionNeeds> functions; // of device code, as far as its backends say
};

/// The phases' names in order.
llvm::ArrayRef<llvm::StringRef> phaseNames();

/// Runs the phases after `compileFrom` up to and with `compileTo`. Fails with diagnostics.
mlir::FailureOr<Lowered> runPipeline(mlir::ModuleOp module, const PipelineOptions &options);

} // namespace sluice::passes
