// Initial data of states: copies it from the graph's data file into the artifact, or into a file next to it.
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "passes/artifact/BuildPlan.h"
#include "llvm/Support/Error.h"

namespace sluice::compiler {

/// Up to this many bytes in total are compiled into the artifact.
inline constexpr uint64_t kMostEmbedded = 4 << 20;

/// Makes the module's data file an absolute path; relative ones are resolved from the folder of `path`, the module's
/// file.
void locateValues(mlir::ModuleOp module, llvm::StringRef path);

/// Reads and checks the data of all states. Missing, misshapen or changed data is an error that names the file, the
/// state and its line. Small data is returned in memory, with f32 data converted to f64 if the module is promoted. For
/// larger data, `file` is the name in the plan of the file that contains it; empty: the module's own.
llvm::Expected<passes::InitialValues> readInitialData(mlir::ModuleOp module, llvm::StringRef file, bool promoteF64);

/// Writes the data that is not in `values` to the artifact's data file.
llvm::Error writeInitialData(mlir::ModuleOp module, const passes::InitialValues &values, const std::string &path);

} // namespace sluice::compiler
