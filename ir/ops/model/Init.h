// Checks of initializers, used by the verifier of states, by shape inference of random ops and by the frontend.
#pragma once

#include "ir/build/Node.h"
#include <string>

namespace sluice::ir {

/// Whether this element type can represent `value`; a float type must not turn a finite number into infinity.
bool holds(mlir::Type element, double value);

/// Whether values of this type are keys of random numbers.
bool isKey(mlir::RankedTensorType type);

/// An error if a shape has too many elements for one draw; empty otherwise.
std::string problemOfDrawn(llvm::ArrayRef<int64_t> shape);

/// The key of the training step after that of `key`.
mlir::Value nextKey(Node key);

/// The error in an initializer of `kind` (constant, uniform in [a, b), normal with mean a and deviation b, key, or
/// data) for values of this type; empty if none.
std::string problemOfInit(llvm::StringRef kind, double a, double b, mlir::RankedTensorType type);

} // namespace sluice::ir
