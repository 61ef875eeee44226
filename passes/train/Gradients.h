// Gradients of the values of a block, as ops of its end add to them.
#pragma once

#include "ir/Dialect.h"
#include "llvm/ADT/DenseSet.h"

namespace sluice::passes {

/// Values that depend on what is differentiated for, through values of floating-point type.
using ActiveValues = llvm::DenseSet<mlir::Value>;

bool isFloat(mlir::Value value);

/// Adds to `active` what the block's ops make of such values, in their regions too.
void addActive(mlir::Block &block, ActiveValues &active);

class Gradients {
public:
  explicit Gradients(mlir::OpBuilder &builder) : builder(builder) {}

  /// Null where nothing of the value has reached the loss.
  mlir::Value lookup(mlir::Value value) const { return gradients.lookup(value); }
  void add(mlir::Value value, mlir::Value gradient);
  /// The gradients of an op's active operands from those of its results.
  mlir::LogicalResult propagate(mlir::Operation *op, const ActiveValues &active);

private:
  mlir::Value bringTo(mlir::Value value, mlir::Value gradient);

  mlir::OpBuilder &builder;
  llvm::DenseMap<mlir::Value, mlir::Value> gradients;
};

/// The same for a scan: see DifferentiateScan.cpp.
mlir::LogicalResult differentiateScan(ir::ScanOp scan, Gradients &gradients, const ActiveValues &active,
                                      mlir::OpBuilder &builder);

} // namespace sluice::passes
