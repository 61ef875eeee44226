// The compiler as a library: from a model to an executable, a library, an object, or the IR of a phase.
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "passes/artifact/Artifact.h"
#include "passes/backend/Backend.h"
#include "passes/driver/Pipeline.h"
#include "runtime/plan/Plan.h"
#include "sluice/compile_options.h"
#include "tools/compiler/placement/report/Report.h"
#include "llvm/Support/Error.h"
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace sluice::compiler {

class CompilerContext;

enum class Emit { Executable, SharedLibrary, Object, Mlir, Dot, None };

/// Whether the output is a text about the module, or nothing, rather than code.
inline bool isText(Emit emit) { return emit == Emit::Mlir || emit == Emit::Dot || emit == Emit::None; }

/// The phases to run, and the outputs of a compilation.
struct CompileTask {
  Emit emit = Emit::Executable;
  std::string output;      // empty: the input's name with the suffix of the output kind; "-": standard output
  std::string compileFrom; // phase of the input; empty: as declared in the input
  std::string compileTo;   // last phase; empty: all phases. Before the last one the output is IR
  std::string kernelTexts; // folder for the texts of kernels; empty: `kernels` in the folder of dumps, if there is one
  std::vector<std::string> otherDevices; // further lists: the artifact has a variant for each, used if the
                                         // devices of earlier lists are absent
  std::string prefer;                    // a device that gets all work it can run, at any cost; for measuring
  bool printLocations = true;            // in IR output
  bool verifiesEach = false;             // verify the IR and all invariants after each pass
  /// Called after each pass; none by default.
  std::function<void(mlir::ModuleOp module, llvm::StringRef phase, llvm::StringRef pass)> observer = {};
  passes::Variant variant; // of the artifact; set by compileFile
  std::string values;      // name in the plan of the file of large initial data; empty: the module's own
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

/// The result of the pipeline.
struct Compiled {
  std::vector<std::string> objects;             // empty if it stopped before the last phase
  runtime::Plan plan;                           // without entry points if it stopped before `planned`
  passes::InitialValues values;                 // initial data of states, from `lowered` on
  std::vector<passes::FunctionNeeds> functions; // of device code, as reported by its backends
  std::vector<std::string> kernels;             // the names of those whose texts were written
  passes::SharedCounts shared;                  // of kernels with code that can be reused
  std::string cacheProblem;                     // the failure to write to the folder of kernels, or empty
  std::string warnings;
  std::vector<PhaseTime> phases;                    // including linking, the last, as `executable`
  std::optional<PlacementReport> placement;         // if devices were chosen
  std::vector<passes::EntryForecast> communication; // of the plan's entry points with communication
  std::optional<passes::LinkCosts> replicaLink;     // used for this prediction
  std::string output;                               // output file, or empty
  std::vector<Compiled> others;                     // for each of the other lists of devices

  /// The sums for all lists of devices.
  passes::SharedCounts allShared() const;
};

/// Reads a graph file or a dump. The module then names its data file by an absolute path.
llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>> readModel(llvm::StringRef path, mlir::MLIRContext &context);

/// Runs the pipeline on the module in place. Compilations with one context share kernels, and share them with other
/// processes unless `options.cache` is off. Null: none are shared.
llvm::Expected<Compiled> compileModule(mlir::ModuleOp module, const CompileOptions &options,
                                       const CompileTask &task = {}, CompilerContext *context = nullptr);

/// Reads a model, compiles it and writes the output: `sluice compile` without its messages.
llvm::Expected<Compiled> compileFile(llvm::StringRef path, const CompileOptions &options, const CompileTask &task = {});

} // namespace sluice::compiler
