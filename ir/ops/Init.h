// How states may begin: what an initialiser must be, asked by the verifier of states, by shape inference of random ops
// and by the frontend.
#pragma once

#include "mlir/IR/BuiltinTypes.h"
#include <string>

namespace sluice::ir {

/// Whether a value of this element type can be `value`; a float cannot be a finite number beyond its range.
bool holds(mlir::Type element, double value);

/// What is wrong with a beginning by `kind` (constant, uniform in [a, b), or normal with mean a and deviation b) for
/// values of this type; empty if nothing is.
std::string problemOfInit(llvm::StringRef kind, double a, double b, mlir::RankedTensorType type);

} // namespace sluice::ir
