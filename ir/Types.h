// Questions about types that ops and passes share.
#pragma once

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Location.h"
#include "mlir/IR/Operation.h"
#include "mlir/IR/TypeRange.h"
#include "mlir/IR/ValueRange.h"
#include "sluice/backend/dtypes.h"
#include <optional>
#include <string>

namespace sluice::ir {

class AtAttr;

/// Whether both lists agree in shapes and element types; encodings may differ.
bool sameShapesAndElements(mlir::TypeRange a, mlir::TypeRange b);

/// `type` with another element type, shape or encoding; the rest is kept (a new shape drops the layout).
mlir::RankedTensorType withElement(mlir::Type type, mlir::Type element);
mlir::RankedTensorType withShape(mlir::Type type, llvm::ArrayRef<int64_t> shape);

/// The entry of an element type in the table of dtypes; fails for types that tensors of the dialect never have.
mlir::FailureOr<sluice_dtype> dtypeOf(mlir::Type element);

/// The element type of an entry of the table.
mlir::Type typeOf(mlir::MLIRContext *context, sluice_dtype dtype);

/// Whether it is a float of two bytes: of memory alone, computed with in f32.
bool isHalf(mlir::Type element);

/// The element type in which products and reductions of such elements add up, before a sum is rounded to what stores
/// it.
mlir::Type getAccumulator(mlir::Type element);

/// The least value of an element type, which is the identity of max.
double leastOf(mlir::Type element);

/// Where a type says its values live; null before placement.
AtAttr getAt(mlir::Type type);
mlir::StringAttr getDevice(mlir::Type type);

/// `type` on a device, or on none (null): not placed yet. The layout is kept.
mlir::RankedTensorType withDevice(mlir::Type type, mlir::StringAttr device);

/// The device that an op is pinned to, or null.
mlir::StringAttr getPin(mlir::Operation *op);

/// Whether an op may do what `movement` does to an operand of it: no pin says that this happens elsewhere.
bool canTakeIn(mlir::Operation *op, mlir::Operation *movement);

/// Puts a new op to work. On the device `fixed`, if there is one: its results live there, as the type says. Else on the
/// device `pin`, if there is one, by `sluice.pin`; ops without operands make constants and need no pin. Else nowhere
/// yet. A pin on another device than `fixed` wins. Ops that are no value ops (copies, `get`) stay as they are.
void setDeviceAndPin(mlir::Operation *op, mlir::StringAttr fixed, mlir::StringAttr pin);

/// "[?, 20, 26, 26]"
std::string printShape(llvm::ArrayRef<int64_t> shape);

/// Reports at `loc` if there is one, and fails.
mlir::LogicalResult inferenceError(std::optional<mlir::Location> loc, const std::string &message);

/// Result of a binary elementwise op: both operands have one type.
mlir::LogicalResult inferBinary(std::optional<mlir::Location> loc, mlir::ValueRange operands,
                                llvm::SmallVectorImpl<mlir::Type> &types);

mlir::LogicalResult verifySameDevice(mlir::Operation *op);

} // namespace sluice::ir
