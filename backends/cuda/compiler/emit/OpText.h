// Types, numbers and ops of arith and math as CUDA C++.
#pragma once

#include "mlir/IR/Operation.h"
#include <string>

namespace sluice::cuda {

/// The type of a number in registers. Integers below 32 bits are unsigned, as lanes are.
std::string typeName(mlir::Type element);
/// An element type in memory: BF16 and F16 are types of the prelude, and floats in registers.
std::string memoryTypeName(mlir::Type element);
/// A number as a C++ literal.
std::string numberText(mlir::Attribute number);
/// The op on these expressions, in its result's type.
std::string opText(mlir::Operation *op, llvm::ArrayRef<std::string> operands);

} // namespace sluice::cuda
