// Every pass, registered once, and the phases that the passes form. The pipeline, `sluice-opt`, `--timing`,
// `--print-after`, `--verify-each` and the table of phases in PHASES.md are made from these tables.
#pragma once

#include "passes/backend/DeviceBackends.h"
#include "passes/driver/Pipeline.h"
#include "passes/kernel/SharedKernels.h"

namespace sluice::passes {

/// The state of a compilation, shared by its passes.
struct Compilation {
  mlir::ModuleOp module;
  const CompileOptions &options;
  const PipelineInputs &inputs;
  const PipelineServices &services;
  std::unique_ptr<DeviceBackends> backends = nullptr; ///< from phase `placed` on
  std::unique_ptr<SharedKernels> shared = nullptr;    ///< of the cache, if there is one
  CostModel costs = {};                               ///< for scheduling
  int64_t shardBuckets = 1;          ///< number of buckets for the shards of each kind; 0: one bucket per shard
  std::vector<DeviceCode> code = {}; ///< of devices, from `lower-kernels` on
  Lowered result = {};
  std::vector<std::string> notes = {}; ///< results of the phase that are not in the IR, for its dump
  bool leavesIr = false;               ///< set by a pass that left the module unchanged
  bool wasExpanded = false;            ///< whether `expand-missing` replaced an op
};

/// Properties of a module that passes rely on, as a set of bits.
using Invariants = uint32_t;
enum : Invariants {
  kEntryPoints = 1 << 0,
  kLoops = 1 << 1,
  kPlaced = 1 << 2,
  kSupported = 1 << 3,
  kLayouts = 1 << 4,
  kKernels = 1 << 5,
  kOneBuffer = 1 << 6,
  kLaunches = 1 << 7,
  kScheduled = 1 << 8,
  kMemory = 1 << 9,
  kWaits = 1 << 10,
};

struct Invariant {
  Invariants bit;
  llvm::StringLiteral name;
  llvm::StringLiteral text;
  /// Reports the first op that violates the property.
  mlir::LogicalResult (*verify)(Compilation &);
};

/// Requirements of a pass beside the module.
enum class Uses { Module, Backends, Compilation };

struct Pass {
  llvm::StringLiteral name; ///< `sluice-opt --sluice-NAME`, unless it needs a whole compilation; `--print-after NAME`
  llvm::StringLiteral summary;
  Invariants needs;       ///< must hold before
  Invariants establishes; ///< hold afterwards, until a pass ends them
  mlir::LogicalResult (*run)(Compilation &);
  Uses uses = Uses::Module;
  Invariants ends = 0; ///< hold no longer
};

/// A pass in its place in a phase.
struct Step {
  llvm::StringLiteral pass;
  bool (*isNeeded)(const Compilation &) = nullptr; ///< null: always
  llvm::StringLiteral condition = "";              ///< `isNeeded` in words
};

struct Phase {
  llvm::StringLiteral name;
  llvm::StringLiteral result; ///< the module afterwards, in words
  llvm::ArrayRef<Step> steps;
  bool canResume = false;                          ///< whether a dump of the phase can be compiled further
  bool (*isNeeded)(const Compilation &) = nullptr; ///< null: always
};

/// In the order in which they first run.
llvm::ArrayRef<Pass> allPasses();
llvm::ArrayRef<Phase> allPhases();
llvm::ArrayRef<Invariant> allInvariants();

/// Null if there is none.
const Pass *findPass(llvm::StringRef name);
/// The number of a phase; none if there is no such phase.
std::optional<size_t> findPhase(llvm::StringRef name);
/// The invariants that hold after a phase.
Invariants invariantsAfter(size_t phase);

/// Verifies these invariants, and reports the first violation.
mlir::LogicalResult verifyInvariants(Compilation &compilation, Invariants invariants);

/// The tables of phases and of invariants, as Markdown.
std::string describePhases();

} // namespace sluice::passes
