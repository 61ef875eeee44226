// How states may begin: what an initialiser must be, asked by the verifier of states, by shape inference of random ops
// and by the frontend.
#pragma once

#include "ir/build/Node.h"
#include <string>

namespace sluice::ir {

/// Whether a value of this element type can be `value`; a float cannot be a finite number beyond its range.
bool holds(mlir::Type element, double value);

/// Whether random numbers can be drawn by values of this type.
bool isKey(mlir::RankedTensorType type);

/// The key of the training step behind that of `key`.
mlir::Value nextKey(Node key);

/// What is wrong with a beginning by `kind` (constant, uniform in [a, b), normal with mean a and deviation b, key, or data) for
/// values of this type; empty if nothing is.
std::string problemOfInit(llvm::StringRef kind, double a, double b, mlir::RankedTensorType type);

} // namespace sluice::ir
