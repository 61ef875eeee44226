// Index expressions as CUDA C++.
#pragma once

#include "backends/loops/LinearIndex.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <string>

namespace sluice::cuda {

/// The expression of an index. It uses 32-bit arithmetic if every intermediate value fits, else 64-bit arithmetic, for
/// which `name` must return a wide variable.
std::string indexText(const loops::IndexSpace &space, mlir::AffineExpr index,
                      llvm::function_ref<std::string(mlir::AffineExpr variable, bool isWide)> name);

} // namespace sluice::cuda
