// Loads and stores of scalars and one-dimensional vectors at an address plus an offset counted in elements.
//
// Addresses need only the element's alignment. Offsets are i64.
#pragma once

#include "mlir/IR/Builders.h"

#include <cstdint>

namespace sluice::cpu {

mlir::Value constantI64(mlir::OpBuilder &b, mlir::Location loc, int64_t value);

// base + offset elements of `element`.
mlir::Value elementAddress(mlir::OpBuilder &b, mlir::Location loc, mlir::Type element, mlir::Value base,
                           mlir::Value offset);
mlir::Value elementAddress(mlir::OpBuilder &b, mlir::Location loc, mlir::Type element, mlir::Value base,
                           int64_t offset);

mlir::Value loadScalar(mlir::OpBuilder &b, mlir::Location loc, mlir::Type element, mlir::Value address);

// All lanes of the result hold the element at `address`.
mlir::Value loadBroadcast(mlir::OpBuilder &b, mlir::Location loc, mlir::VectorType type, mlir::Value address);

mlir::Value loadVector(mlir::OpBuilder &b, mlir::Location loc, mlir::VectorType type, mlir::Value address);

// Reads the first `lanes` elements only; the other lanes are zero.
mlir::Value loadFirstLanes(mlir::OpBuilder &b, mlir::Location loc, mlir::VectorType type, mlir::Value address,
                           int64_t lanes);

void storeVector(mlir::OpBuilder &b, mlir::Location loc, mlir::Value vector, mlir::Value address);

// The first `lanes` lanes as a narrower vector; the vector itself if that is all lanes.
mlir::Value firstLanes(mlir::OpBuilder &b, mlir::Location loc, mlir::Value vector, int64_t lanes);

// `locality` is the hint of llvm.prefetch: 3 for the first-level cache, 2 for the second.
void prefetch(mlir::OpBuilder &b, mlir::Location loc, mlir::Value address, bool forWrite = false, int locality = 3);

} // namespace sluice::cpu
