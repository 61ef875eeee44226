// What the compiler has decided of where a program works, where the user has not.
#pragma once

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseMap.h"

namespace sluice::passes {

/// The logical devices of ops and states of one module in phase `train`. Of those that it lacks nobody has decided.
using ChosenDevices = llvm::DenseMap<mlir::Operation *, mlir::StringAttr>;

} // namespace sluice::passes
