// The compiler as a library: from a model to an executable, a library, an object, or the IR of a phase.
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "passes/artifact/Artifact.h"
#include "passes/backend/Backend.h"
#include "passes/schedule/BucketCollectives.h"
#include "runtime/plan/CommunicationForecast.h"
#include "runtime/plan/Plan.h"
#include "tools/compiler/placement/Request.h"
#include "tools/compiler/placement/report/Report.h"
#include "llvm/Support/Error.h"
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace sluice::compiler {

enum class Emit { Executable, SharedLibrary, Object, Mlir, Dot, None };

/// Whether the output is a text about the module, or nothing, rather than code.
inline bool isText(Emit emit) { return emit == Emit::Mlir || emit == Emit::Dot || emit == Emit::None; }

struct CompileOptions {
  Emit emit = Emit::Executable;
  std::string output;      // empty: the input's name with the suffix of the output kind; "-": standard output
  std::string compileFrom; // phase of the input; empty: as declared in the input
  std::string compileTo;   // last phase; empty: all phases. Before the last one the output is IR
  std::string dumpIrDir;   // empty: no dumps
  std::string kernelTexts; // folder for the texts of kernels; empty: `kernels` in dumpIrDir, if there are dumps
  std::string devices;     // such as `cpu,sim:0` or `cpu,sim:0=16GB`; empty: as in the model
  std::vector<std::string> otherDevices; // further lists: the artifact has a variant for each, used if the
                                         // devices of earlier lists are absent
  passes::Variant variant;               // of the artifact; set by compileFile
  PlacementRequest placement;            // whether and how to choose devices that the user left open
  std::string copies;         // explicit, warn or insert: policy for copies that pins require; empty: as in the model
  std::string cpu = "native"; // the CPU whose instructions the code may use
  passes::BackendSettings settings;  // of single backends: "arch=sm_90" for "cuda"
  std::optional<int64_t> replicas;   // replicas that share the rows, as in ir::getReplicas; none: as in the model
  std::optional<int64_t> accumulate; // maximum number of microbatches per call; none: as in the model
  std::optional<int64_t> zero;       // the ZeRO level, 0 or 1; none: as in the model
  std::optional<int64_t> shards;     // logical shards of a call's rows (ir::getLogicalShards); none: as in the model
  std::string batchNorm;             // statistics: "local" (per replica) or "sync"; empty: as in the model, else local
  std::string wire;                  // type of gradient all-reduces, f32 or bf16; empty: as in the model
  std::optional<passes::BucketPolicy> buckets; // bucketing of collectives; none: Auto
  std::vector<std::string> entries;            // entry points to compile; empty: as in the model, else all
  int64_t capacity = 0;                        // rows of the batch; 0: as in the model
  bool fuse = true;
  bool reuseMemory = true;
  bool promoteF64 = false;
  std::string precision;      // f32, bf16 or f16: of f32 products; empty: as in the model
  bool printLocations = true; // in IR output
  bool verifiesEach = false;  // verify the IR and all invariants after each pass
  /// Called after each pass; none by default.
  std::function<void(mlir::ModuleOp module, llvm::StringRef phase, llvm::StringRef pass)> observer = {};
  std::string values; // name in the plan of the file of large initial data; empty: the module's own
};

struct PassTime {
  std::string pass; // "verify": MLIR's verifier after the phase
  double seconds;
};

struct PhaseTime {
  std::string phase;
  double seconds;
  std::vector<PassTime> passes = {}; // in order
};

/// The predicted communication of replicas in consecutive calls of an entry point.
struct EntryForecast {
  std::string entry;
  runtime::CommunicationForecast communication;
};

/// The result of the pipeline.
struct Compiled {
  std::vector<std::string> objects;             // empty if it stopped before the last phase
  runtime::Plan plan;                           // without entry points if it stopped before `planned`
  passes::InitialValues values;                 // initial data of states, from `lowered` on
  std::vector<passes::FunctionNeeds> functions; // of device code, as reported by its backends
  std::vector<std::string> kernels;             // the names of those whose texts were written
  std::string warnings;
  std::vector<PhaseTime> phases;                // including linking, the last, as `executable`
  std::optional<PlacementReport> placement;     // if devices were chosen
  std::vector<EntryForecast> communication;     // of the plan's entry points with communication
  std::optional<passes::LinkCosts> replicaLink; // used for this prediction
  std::string output;                           // output file, or empty
  std::vector<Compiled> others;                 // for each of the other lists of devices
};

/// The phases at which compilation can stop, in order; `executable` is the last.
std::vector<llvm::StringRef> phaseNames();

/// Reads a graph file or a dump. The module then names its data file by an absolute path.
llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>> readModel(llvm::StringRef path, mlir::MLIRContext &context);

/// Runs the pipeline on the module in place.
llvm::Expected<Compiled> compileModule(mlir::ModuleOp module, const CompileOptions &options);

/// Reads a model, compiles it and writes the output: `sluice compile` without its messages.
llvm::Expected<Compiled> compileFile(llvm::StringRef path, const CompileOptions &options);

} // namespace sluice::compiler
