// What goes from one part of an entry point to another where this is cut into microbatches: by states.
#pragma once

#include "ir/Module.h"
#include "mlir/IR/SymbolTable.h"
#include "passes/assign/FixedDevices.h"
#include "passes/place/InheritDevice.h"

namespace sluice::passes {

/// A value that goes from one part to another by a state.
struct Kept {
  ir::StateOp state;
  mlir::RankedTensorType type; // that it is read with

  mlir::Value get(mlir::OpBuilder &builder) const;
  void set(mlir::OpBuilder &builder, mlir::Value value) const;
};

/// The operand of a collective: what the microbatches have of it.
struct Accumulated {
  ir::CollectiveOp collective;
  mlir::Value part;
  Kept kept;
  bool isSet = false;                 // each microbatch sets the state, instead of adding to it
  llvm::SmallVector<Kept> lefts = {}; // of a sum in a tree: at each level what waits for its right neighbour
  Kept shard = {};                    // which counts the shards, where somebody must know

  bool isFirst() { return collective.getKind() == ir::CollectiveKind::Broadcast; }
  bool isInTree() { return collective.getReduction() == ir::CollectiveReduction::TreeSum; }
};

/// The states of an entry point that is cut. It is to be made before the entry point changes.
class KeptStates {
public:
  KeptStates(ir::EntryOp entry, mlir::SymbolTable &symbols) : entry(entry), symbols(symbols), fixed(entry) {}

  /// One like `value`, where that lives, that begins as what a reduction adds nothing with.
  Kept keep(mlir::Value value, mlir::RankedTensorType type, ir::CollectiveReduction reduction, ir::StateOp parameter);
  /// One more for the operand of a collective.
  Kept keepBeside(const Accumulated &its);
  /// A number that begins at zero, where `value` lives.
  Kept keepNumber(mlir::Value value, llvm::StringRef name, mlir::StringAttr followed);

  /// The parameter that a whole value updates by values of its shape, where it is the only one and alike.
  ir::StateOp parameterOf(mlir::Value whole) const;
  /// The device that the user has decided of for what makes a value.
  mlir::StringAttr deviceOf(mlir::Value value) const { return fixed.of(value.getDefiningOp()); }
  /// What is built for an operand works where that is made.
  InheritDevice devicesOf(mlir::OpBuilder &builder, const Accumulated &its) const {
    return InheritDevice(builder, ir::getDevice(its.part.getType()), deviceOf(its.part));
  }

private:
  std::string freeName(const std::string &first, const std::string &base) const;
  std::string nameFor(ir::StateOp parameter) const;
  Kept make(mlir::Value value, mlir::RankedTensorType type, const std::string &name, double first,
            ir::StateOp parameter);

  ir::EntryOp entry;
  mlir::SymbolTable &symbols;
  FixedDevices fixed;
};

} // namespace sluice::passes
