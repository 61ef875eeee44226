// Values that pass from one part to another through states, in an entry point that is split for microbatches.
#pragma once

#include "ir/Module.h"
#include "mlir/IR/SymbolTable.h"
#include "passes/assign/FixedDevices.h"
#include "passes/place/InheritDevice.h"

namespace sluice::passes {

/// A value that passes from one part to another through a state.
struct Kept {
  ir::StateOp state;
  mlir::RankedTensorType type; // of the values that `get` reads

  mlir::Value get(mlir::OpBuilder &builder) const;
  void set(mlir::OpBuilder &builder, mlir::Value value) const;
};

/// The microbatches' values of a collective's operand.
struct Accumulated {
  ir::CollectiveOp collective;
  mlir::Value part;
  Kept kept;
  bool isSet = false;                 // each microbatch sets the state instead of adding to it
  llvm::SmallVector<Kept> lefts = {}; // of a tree sum: per level, the value that waits for its right neighbor
  Kept shard = {};                    // counts the shards, if needed

  /// Whether replicas take the first replica's value instead of a sum or maximum.
  bool isFirst() { return collective.getKind() == ir::CollectiveKind::Broadcast; }
  /// Whether logical shards are added in a balanced tree (ShardTree.h).
  bool isInTree() { return collective.getReduction() == ir::CollectiveReduction::TreeSum; }
};

/// The states of an entry point that is split. Construct it before the entry point changes.
class KeptStates {
public:
  KeptStates(ir::EntryOp entry, mlir::SymbolTable &symbols) : entry(entry), symbols(symbols), fixed(entry) {}

  /// A state like `value`, on its device, that starts at the neutral element of the reduction.
  Kept keep(mlir::Value value, mlir::RankedTensorType type, ir::CollectiveReduction reduction, ir::StateOp parameter);
  /// Another state for the operand of a collective.
  Kept keepBeside(const Accumulated &its);
  /// A number that starts at zero, on the device of `value`.
  Kept keepNumber(mlir::Value value, llvm::StringRef name, mlir::StringAttr followed);

  /// The only parameter that the whole value updates, if it has the value's shape; else null.
  ir::StateOp parameterOf(mlir::Value whole) const;
  /// The device that the user chose for the producer of a value.
  mlir::StringAttr deviceOf(mlir::Value value) const { return fixed.of(value.getDefiningOp()); }
  /// Ops built for an operand run on the device of its producer.
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
