// The states of a training step: what it reads of them, once each, and those that it adds.
#pragma once

#include "ir/Dialect.h"

namespace sluice::passes {

/// The value of a state at the beginning of the entry point, of this type; one get per state.
mlir::Value readState(mlir::OpBuilder &builder, ir::StateOp state, mlir::RankedTensorType type);

/// Adds states before the graph.
class TrainingStates {
public:
  explicit TrainingStates(ir::MinimizeOp minimize) : builder(minimize->getParentOp()) {}

  /// One that begins so in every element. `of`: a slot's parameter; `physical`: where it is kept. Both may be null.
  ir::StateOp create(mlir::Location loc, const mlir::Twine &name, ir::StateKind kind, mlir::RankedTensorType type,
                     double first, mlir::FlatSymbolRefAttr of, mlir::TypeAttr physical);
  /// One of a parameter, that begins with zeros.
  ir::StateOp createSlot(ir::StateOp parameter, mlir::StringRef name);

private:
  mlir::OpBuilder builder;
};

} // namespace sluice::passes
