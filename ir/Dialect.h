// The sluice dialect: include this for all its ops, attributes and interfaces.
#pragma once

#include "ir/ActionClock.h"
#include "ir/RowFlow.h"
#include "ir/Types.h"
#include "ir/build/ElementBuilder.h"
#include "ir/ops/product/Equation.h"
#include "ir/reference/HostTensor.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "ir/AttrInterfaces.h.inc"
#include "ir/Dialect.h.inc"
#include "ir/Enums.h.inc"
#include "ir/Interfaces.h.inc"
#define GET_TYPEDEF_CLASSES
#include "ir/Types.h.inc"
#define GET_ATTRDEF_CLASSES
#include "ir/Attributes.h.inc"

namespace sluice::ir {

/// Operands and results are on one device; the diagnostic names both. Values without a device are not placed yet.
template <typename Op> class SameDevice : public mlir::OpTrait::TraitBase<Op, SameDevice> {
public:
  static mlir::LogicalResult verifyTrait(mlir::Operation *op) { return verifySameDevice(op); }
};

/// No gradient flows through the op.
template <typename Op> class NoGradient : public mlir::OpTrait::TraitBase<Op, NoGradient> {};

/// Operands and results have one layout where the backend leaves it open.
template <typename Op> class SharesLayout : public mlir::OpTrait::TraitBase<Op, SharesLayout> {};

/// How `mixPrecision` treats an op whose operands are f32: see ir/Base.td. An op without any of these stays in f32.
template <typename Op> class ComputesNarrow : public mlir::OpTrait::TraitBase<Op, ComputesNarrow> {};
template <typename Op> class FollowsPrecision : public mlir::OpTrait::TraitBase<Op, FollowsPrecision> {};
template <typename Op> class RoundsNarrow : public mlir::OpTrait::TraitBase<Op, RoundsNarrow> {};

/// On an op: the logical device (a string) on which it runs.
inline constexpr llvm::StringLiteral kPinAttr = "sluice.pin";
/// On an op or a state: the logical device that the compiler chose, until all values have their devices.
inline constexpr llvm::StringLiteral kChosenAttr = "sluice.chosen";
/// The logical device of the host: the first of every target.
inline constexpr llvm::StringLiteral kHostDevice = "cpu";

} // namespace sluice::ir

#define GET_OP_CLASSES
#include "ir/Ops.h.inc"
