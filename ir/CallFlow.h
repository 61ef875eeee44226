// Combination of a value over several calls: whether a metric over all rows is a mean or sum over rows, or a formula of
// these. Row flow (RowFlow.h) is the same analysis for replicas.
#pragma once

#include "ir/Dialect.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SetVector.h"

#include <optional>

namespace sluice::ir {

/// The entry point that computes metrics once, from the combined values of all calls.
inline constexpr llvm::StringLiteral kMetricsEntry = "metrics";

/// Attribute of a metric that is declared as a formula of sums and means over rows.
inline constexpr llvm::StringLiteral kIsFormula = "sluice.formula";

/// On `sluice.minimize`: the training step does not return the loss.
inline constexpr llvm::StringLiteral kIsUnreported = "sluice.unreported";

enum class CallFlow {
  Fixed,   ///< the same in each call
  Rows,    ///< each call has its own rows
  Sum,     ///< the sum of the calls' values
  Mean,    ///< the mean of the calls' values, weighted by their rows
  Formula, ///< computed from sums and means of all calls
  Own,     ///< of one call alone: the calls' values do not determine the value of all rows
};

/// The computation of a formula from sums, means, and values that are the same in each call.
struct CallFormula {
  llvm::SmallVector<mlir::Value> parts;     ///< these values, of one element each
  llvm::SmallVector<mlir::Operation *> ops; ///< compute the value from the parts, in this order
};

/// The flows of a graph's values outside of training.
class CallFlows {
public:
  /// In a graph without `?`, dimension 0 of the inputs counts as the dimension of the rows.
  explicit CallFlows(GraphOp graph);

  CallFlow of(mlir::Value value) const { return flows.lookup(value); }
  /// The formula of a value; none if the value depends on anything but its parts and constants. With `parts`, these
  /// values take the place of sums and means.
  std::optional<CallFormula> formulaOf(mlir::Value value, mlir::ValueRange parts = {}) const;
  /// The combination of a metric over all rows: Mean, Sum, Formula with the formula, or Own. In a graph without `?`,
  /// all calls have the same number of rows. A metric is then a Mean unless it is declared as a formula.
  std::pair<CallFlow, CallFormula> figureOf(mlir::Value value, bool isDeclared) const;

private:
  bool hasRows(mlir::Value value) const;
  void classify(mlir::Block &block);
  void classify(mlir::Operation &op);
  CallFlow flowOfNested(mlir::Operation &op);
  CallFlow flowOfWhole(mlir::Operation &op) const;
  CallFlow flowOfRows(mlir::Operation &op, mlir::Value result) const;
  /// Adds the parts and the ops of a value's formula; returns false if the value has none.
  bool collect(mlir::Value value, mlir::ValueRange parts, llvm::SetVector<mlir::Value> &found,
               llvm::SetVector<mlir::Operation *> &ops) const;

  bool isStatic;
  llvm::DenseMap<mlir::Value, CallFlow> flows; ///< absent: Fixed
};

} // namespace sluice::ir
