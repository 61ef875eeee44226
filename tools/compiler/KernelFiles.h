// The files of each kernel, for reading: NAME.txt has facts and NAME.mlir the body of its function. Its backend has
// written the other files, such as NAME.ll (sluice_target_options::temporaries).
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "passes/analysis/CostModel.h"
#include "passes/backend/Backend.h"
#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace sluice::compiler {

/// Writes the files of all functions of a module in phase `lowered`. The backend's facts follow those of the compiler.
/// Returns the names in the order of the module.
llvm::Expected<std::vector<std::string>> writeKernels(mlir::ModuleOp module, const std::string &folder,
                                                      const passes::CostModel &costs,
                                                      llvm::ArrayRef<passes::FunctionNeeds> needs);

} // namespace sluice::compiler
