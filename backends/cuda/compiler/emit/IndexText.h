// Index expressions as CUDA C++.
#pragma once

#include "backends/loops/LinearIndex.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <string>

namespace sluice::cuda {

/// In 32 bits where every intermediate value fits, else in 64: then `name` is asked for a wide variable.
std::string indexText(const loops::IndexSpace &space, mlir::AffineExpr index,
                      llvm::function_ref<std::string(mlir::AffineExpr variable, bool isWide)> name);

} // namespace sluice::cuda
