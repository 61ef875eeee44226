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
#include <optional>
#include <string>
#include <vector>

namespace sluice::compiler {

enum class Emit { Executable, SharedLibrary, Object, Mlir, Dot, None };

/// Whether a text about the module comes out, or nothing, rather than code.
inline bool isText(Emit emit) { return emit == Emit::Mlir || emit == Emit::Dot || emit == Emit::None; }

struct CompileOptions {
  Emit emit = Emit::Executable;
  std::string output;            // empty: the input's name with the ending of what is emitted; "-": the standard output
  std::string compileFrom;       // the phase that the input is in; empty: what the input says
  std::string compileTo;         // the last phase; empty: all of them. Before the last one the output is IR
  std::string dumpIrDir;         // empty: no dumps
  std::string temporaries;       // a folder for what people read of code, in one of each backend; empty: none
  bool savesTemporaries = false; // of a file: if that is empty, into OUTPUT.temps
  std::string devices;           // as in `cpu,sim:0` or `cpu,sim:0=16GB`; empty: what the model says
  std::vector<std::string> otherDevices; // further lists: the artifact has a variant for each, which is taken where the
                                         // devices of those before are not there
  passes::Variant variant;               // of the artifact, that the module is compiled for; compileFile sets it
  PlacementRequest placement;            // whether and how to choose devices where the user has not
  std::string copies; // explicit, warn or insert: what becomes of copies that pins need; empty: what the model says
  std::string cpu = "native";       // whose instructions the code may use
  passes::BackendSettings settings; // of backends' own: "arch=sm_90" for "cuda"
  std::optional<int64_t>
      replicas; // of the program, on a share of the rows each, as ir::getReplicas; none: what the model says
  std::optional<int64_t> accumulate; // into so many microbatches a call is cut, at most; none: what the model says
  std::optional<int64_t> zero;       // the ZeRO level, 0 or 1; none: what the model says
  std::optional<int64_t> shards; // that the rows of a call are cut into for any number of replicas; none: as it says
  std::string batchNorm;         // of replicas: "local" or "sync"; empty: what the model says, else local
  std::string wire;              // f32 or bf16: of gradients between replicas; empty: what the model says
  std::optional<passes::BucketPolicy> buckets; // of replicas: how their collectives share; none: Auto
  int64_t capacity = 0;                        // rows of the batch; 0: what the model says
  bool fuse = true;
  bool reuseMemory = true;
  bool promoteF64 = false;
  std::string precision;      // f32, bf16 or f16: of products of f32; empty: what the model says
  bool printLocations = true; // in IR that is written
  std::string values;         // what the plan calls the file of large initial data; empty: the module's own
};

struct PhaseTime {
  std::string phase;
  double seconds;
};

/// What the replicas are predicted to exchange in calls of an entry point that follow each other.
struct EntryForecast {
  std::string entry;
  runtime::CommunicationForecast communication;
};

/// What came out of the pipeline.
struct Compiled {
  std::vector<std::string> objects;             // empty if it stopped before the last phase
  runtime::Plan plan;                           // of no entry points if it stopped before `planned`
  passes::InitialValues values;                 // that states begin with, if it got as far as `lowered`
  std::vector<passes::FunctionNeeds> functions; // of device code, as far as its backends say
  std::string warnings;
  std::vector<PhaseTime> phases;                // linking is the last, as `executable`
  std::optional<PlacementReport> placement;     // if there was something to choose
  std::vector<EntryForecast> communication;     // of entry points in which replicas exchange anything; of the plan
  std::optional<passes::LinkCosts> replicaLink; // that this is predicted by
  std::string output;                           // the file that was written, or empty
  std::vector<Compiled> others;                 // for each of the other lists of devices
};

/// The phases that can be stopped at, in order; `executable` is the last.
std::vector<llvm::StringRef> phaseNames();

/// Reads a graph's file or a dump, which names its file of data by an absolute path then.
llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>> readModel(llvm::StringRef path, mlir::MLIRContext &context);

/// Runs the pipeline on the module in place.
llvm::Expected<Compiled> compileModule(mlir::ModuleOp module, const CompileOptions &options);

/// Reads a model, compiles it and writes the output: all that `sluice compile` does but talk.
llvm::Expected<Compiled> compileFile(llvm::StringRef path, const CompileOptions &options);

} // namespace sluice::compiler
