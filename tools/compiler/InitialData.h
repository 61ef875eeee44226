// What states begin with where that is data: from the file beside a graph into the artifact, or beside it.
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "passes/artifact/BuildPlan.h"
#include "llvm/Support/Error.h"

namespace sluice::compiler {

/// Up to so many bytes in all are compiled into the artifact.
inline constexpr uint64_t kMostEmbedded = 4 << 20;

/// From now on the module names its file of values by an absolute path; relative ones begin at the folder of `path`, the
/// file that it was read from.
void locateValues(mlir::ModuleOp module, llvm::StringRef path);

/// Reads and checks the data of all states: what is missing, misshapen or changed is an error that names the file, the state
/// and its line. Small data comes back whole, in f64 what is f32 and to be promoted; of more, `file` is what the plan is to call
/// the file that has it, empty: the module's own.
llvm::Expected<passes::InitialValues> readInitialData(mlir::ModuleOp module, llvm::StringRef file, bool promoteF64);

/// Writes what `values` leaves to a file of the artifact's own.
llvm::Error writeInitialData(mlir::ModuleOp module, const passes::InitialValues &values, const std::string &path);

} // namespace sluice::compiler
