// Conversions of element types.
#pragma once

#include "frontend/onnx/import/Node.h"

namespace sluice::onnx {

/// x, of type `from`, as type `to`. Integers that are narrower than the dtype that holds them wrap around. Throws
/// Unsupported for types that graphs do not hold.
Tensor castTo(const Tensor &x, ElementType from, ElementType to);
/// The result of arithmetic on integers of a type: wraps around if the type is narrower than the dtype that holds it.
Tensor wrapped(const Tensor &x, ElementType type);

} // namespace sluice::onnx
