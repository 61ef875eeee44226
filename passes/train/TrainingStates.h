// The states of a training step: reads each once, and creates additional ones.
#pragma once

#include "ir/Dialect.h"

namespace sluice::passes {

/// The value of a state at the beginning of the entry point, of this type; one get per state.
mlir::Value readState(mlir::OpBuilder &builder, ir::StateOp state, mlir::RankedTensorType type);

/// Creates the states of a training step before the graph, and reads states in its entry point. Every lookup takes
/// constant time, because deep models have thousands of states.
class TrainingStates {
public:
  explicit TrainingStates(ir::MinimizeOp minimize);

  /// The state of this name; null if there is none.
  ir::StateOp find(mlir::StringAttr name) const { return states.lookup(name); }
  /// Same as `readState`. All reads of one `TrainingStates` are in the same entry point.
  mlir::Value read(mlir::OpBuilder &builder, ir::StateOp state, mlir::RankedTensorType type);
  /// Same as `passes::pinOf`.
  mlir::StringAttr pinOf(mlir::Value value) const;

  /// Creates a state with this initial value in every element. `of`: a slot's parameter; `physical`: the physical type.
  /// Both may be null.
  ir::StateOp create(mlir::Location loc, const mlir::Twine &name, ir::StateKind kind, mlir::RankedTensorType type,
                     double first, mlir::FlatSymbolRefAttr of, mlir::TypeAttr physical);
  /// Creates a slot of a parameter, initialized to zeros.
  ir::StateOp createSlot(ir::StateOp parameter, mlir::StringRef name);

private:
  mlir::OpBuilder builder;
  llvm::DenseMap<mlir::StringAttr, ir::StateOp> states;
  llvm::DenseMap<mlir::StringAttr, mlir::Value> reads; ///< in the entry point, by state
};

} // namespace sluice::passes
