// The gradients of the values of a block while they are accumulated from its end.
#pragma once

#include "ir/Dialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/DenseSet.h"

namespace sluice::passes {

/// Values that depend on a differentiation variable through values of floating-point type.
using ActiveValues = llvm::DenseSet<mlir::Value>;

bool isFloat(mlir::Value value);

/// Adds to `active` the results of ops with active operands, including those in regions: of one op, or of a block's
/// ops.
void addActive(mlir::Operation &op, ActiveValues &active);
void addActive(mlir::Block &block, ActiveValues &active);

class Gradients {
public:
  /// `asked`: the line that requests gradients, at which errors are reported.
  Gradients(mlir::OpBuilder &builder, mlir::Location asked) : builder(builder), asked(asked) {}

  mlir::Location getAsked() const { return asked; }

  /// Null if no gradient has reached the value.
  mlir::Value lookup(mlir::Value value) const { return gradients.lookup(value); }
  void add(mlir::Value value, mlir::Value gradient);
  /// Adds the gradients of an op's active operands, computed from those of its results.
  mlir::LogicalResult propagate(mlir::Operation *op, const ActiveValues &active);

private:
  mlir::Value bringTo(mlir::Value value, mlir::Value gradient);
  mlir::LogicalResult propagateThroughFormula(ir::FormulaGradientOp op, mlir::ValueRange dResults, ActiveValues active);
  mlir::LogicalResult failAt(mlir::Operation *op);

  mlir::OpBuilder &builder;
  mlir::Location asked;
  llvm::DenseMap<mlir::Value, mlir::Value> gradients;
};

/// A block under construction. Until an op takes it, its parent is the builder's region: its ops may use values defined
/// before, and defining ops of its operands are found.
class NestedBlock {
public:
  NestedBlock(mlir::OpBuilder &builder, mlir::Location loc) : holder(builder.create<mlir::ModuleOp>(loc)) {}
  NestedBlock(const NestedBlock &) = delete;
  NestedBlock &operator=(const NestedBlock &) = delete;
  ~NestedBlock() { holder.erase(); }

  mlir::Region &region() { return holder.getBodyRegion(); }
  mlir::Block *get() { return holder.getBody(); }
  /// Detaches the block for its op.
  mlir::Block *take() {
    mlir::Block *block = get();
    region().getBlocks().remove(block);
    return block;
  }

private:
  mlir::ModuleOp holder;
};

/// `Gradients::propagate` for a scan: see DifferentiateScan.cpp.
mlir::LogicalResult differentiateScan(ir::ScanOp scan, Gradients &gradients, const ActiveValues &active,
                                      mlir::OpBuilder &builder);

/// `Gradients::propagate` for a branch: see DifferentiateBranch.cpp.
mlir::LogicalResult differentiateBranch(ir::IfOp op, Gradients &gradients, const ActiveValues &active,
                                        mlir::OpBuilder &builder);

} // namespace sluice::passes
