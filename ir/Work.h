// The work of a launch, from the ops' interfaces: the basis of every cost.
#pragma once

#include "ir/Dialect.h"

namespace sluice::ir {

/// Whether the op computes a value and therefore belongs in a kernel.
bool isCompute(mlir::Operation *op);
/// Whether the op is injective: each result element needs one element of each operand.
bool isInjective(mlir::Operation *op);
/// Whether the op computes each element from many.
bool isReduction(mlir::Operation *op);
/// Whether the op is a copy between two devices, which no kernel contains.
bool isCrossing(mlir::Operation *op);

/// Whether the op only widens stored elements: two-byte floats, or bytes in blocks. A consumer that widens them itself
/// reads fewer bytes, and the wide value is never stored.
bool isWidening(mlir::Operation *op);

/// Whether the op has several consumers and only shifts or scales the result of a product by a value computed from all
/// its elements, such as their mean. A consumer that rematerializes the op reads no more bytes, and its result is never
/// stored.
bool isReadFromProduct(mlir::Operation *op);

/// Whether the op is elementwise on values in memory, and all its consumers extract parts of its result, in total no
/// more elements than the result has. Rematerializing the op in the consumers of the parts costs no more.
bool isReadInParts(mlir::Operation *op);

/// The operand that an update stores: its part, or the value of which the part only adds dimensions of size 1.
mlir::Value storedBy(UpdateOp update);

/// A constant part, and a part per row of the call.
struct Work {
  int64_t flops = 0, flopsPerRow = 0; ///< twice the multiply-adds of products; one per element of other compute ops
  int64_t bytes = 0, bytesPerRow = 0; ///< lower bound of memory traffic: inputs and outputs, each once
};

/// The work of ops in one launch that reads `inputs`, their operands, and writes `outputs`. The padding of layouts
/// counts, because it is moved. Of an input that indices select from, only the selection counts.
Work workOf(llvm::ArrayRef<mlir::Operation *> ops, mlir::ValueRange inputs, mlir::ValueRange outputs, int64_t capacity);

/// The op that determines the launch's kind: its product, else its last reduction; "elementwise" or "movement" if it
/// has neither.
llvm::StringRef kindOf(llvm::ArrayRef<mlir::Operation *> ops);

} // namespace sluice::ir
