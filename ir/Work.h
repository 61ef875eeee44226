// What a launch of ops has to do, from the ops' interfaces: the ground of every cost.
#pragma once

#include "ir/Dialect.h"

namespace sluice::ir {

/// Whether the op computes a value, and so belongs into a kernel.
bool isCompute(mlir::Operation *op);
/// Whether the op only moves elements, each to where its index says.
bool isInjective(mlir::Operation *op);
/// Whether the op computes its elements of many.
bool isReduction(mlir::Operation *op);
/// Whether the op is a copy between two devices, which no kernel holds.
bool isCrossing(mlir::Operation *op);

/// Whether the op only widens halves: each reader reads less where it does that itself, and nobody has to write more.
bool isWidening(mlir::Operation *op);

/// Whether the op only sets off what a product leaves by what is found from all of it, its mean say, for several readers: each of
/// them reads no more where it does that itself, and nobody has to write it.
bool isReadFromProduct(mlir::Operation *op);

/// Whether the op computes of memory, elementwise, what others read in parts, each element once: there it costs no more.
bool isReadInParts(mlir::Operation *op);

/// What an update stores: its part, or where that has dimensions of size 1 more than a value whose elements it is, that value.
mlir::Value storedBy(UpdateOp update);

/// Constant parts, and parts for each row of the call.
struct Work {
  int64_t flops = 0, flopsPerRow = 0; ///< multiply-adds times two of products, one an element of other ops that compute
  int64_t bytes = 0, bytesPerRow = 0; ///< that must move at least: inputs and outputs, each once
};

/// The work of ops in one launch, which read `inputs`, their operands, and leave `outputs`. Padding of layouts counts, as it is
/// moved; of an input that indices choose from, what they choose.
Work workOf(llvm::ArrayRef<mlir::Operation *> ops, mlir::ValueRange inputs, mlir::ValueRange outputs, int64_t capacity);

/// The name of the op that such a launch is built around: its product, else its last reduction; "elementwise" or
/// "movement" if it has neither.
llvm::StringRef kindOf(llvm::ArrayRef<mlir::Operation *> ops);

} // namespace sluice::ir
