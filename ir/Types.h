// Type queries shared by ops and passes.
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

/// `type` with another element type, shape or encoding. The rest is kept, except that a new shape drops the layout.
mlir::RankedTensorType withElement(mlir::Type type, mlir::Type element);
mlir::RankedTensorType withShape(mlir::Type type, llvm::ArrayRef<int64_t> shape);

/// The entry of an element type in the table of dtypes; fails for types that no tensor of the dialect has.
mlir::FailureOr<sluice_dtype> dtypeOf(mlir::Type element);

/// The element type of an entry of the table.
mlir::Type typeOf(mlir::MLIRContext *context, sluice_dtype dtype);

/// Whether the type is a two-byte float: a storage type, computed in f32.
bool isHalf(mlir::Type element);

/// The element type in which products and reductions accumulate, before a sum is rounded to its storage type.
mlir::Type getAccumulator(mlir::Type element);

/// The least value of an element type, which is the identity of max.
double leastOf(mlir::Type element);

/// The encoding of a type; null if it has none.
AtAttr getAt(mlir::Type type);
/// The device in a type; null before placement.
mlir::StringAttr getDevice(mlir::Type type);

/// `type` on a device, or unplaced (null). The layout is kept.
mlir::RankedTensorType withDevice(mlir::Type type, mlir::StringAttr device);

/// The device that an op is pinned to, or null.
mlir::StringAttr getPin(mlir::Operation *op);

/// Whether an op may absorb `movement`, the producer of an operand: no pin forces it to another device.
bool canTakeIn(mlir::Operation *op, mlir::Operation *movement);

/// Gives a new op its device. With `fixed`, its results are on that device, by their types. Else with `pin`,
/// `sluice.pin` is set; ops without operands are constants and need no pin. Else the op is unplaced. A pin on another
/// device than `fixed` takes precedence. Ops without the trait `SameDevice`, such as copies and `get`, are unchanged.
void setDeviceAndPin(mlir::Operation *op, mlir::StringAttr fixed, mlir::StringAttr pin);

/// "[?, 20, 26, 26]"
std::string printShape(llvm::ArrayRef<int64_t> shape);

/// Reports at `loc` if given, and fails.
mlir::LogicalResult inferenceError(std::optional<mlir::Location> loc, const std::string &message);

/// Result of a binary elementwise op: both operands have one type.
mlir::LogicalResult inferBinary(std::optional<mlir::Location> loc, mlir::ValueRange operands,
                                llvm::SmallVectorImpl<mlir::Type> &types);

mlir::LogicalResult verifySameDevice(mlir::Operation *op);

} // namespace sluice::ir
