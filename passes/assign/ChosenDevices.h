// Devices that the compiler chose where the user chose none.
#pragma once

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseMap.h"

namespace sluice::passes {

/// The logical devices of ops and states of one module in phase `train`. Missing ops and states are undecided.
using ChosenDevices = llvm::DenseMap<mlir::Operation *, mlir::StringAttr>;

} // namespace sluice::passes
