// What values of all rows of several calls are made of what each call has of them: whether a metric is a mean or a sum over rows,
// or a formula of such. Row flow (RowFlow.h) is the same question about replicas.
#pragma once

#include "ir/Dialect.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SetVector.h"

#include <optional>

namespace sluice::ir {

/// The entry point that computes metrics once from what all calls have.
inline constexpr llvm::StringLiteral kMetricsEntry = "metrics";

/// On a metric: its value is declared to be a formula of sums and means over rows.
inline constexpr llvm::StringLiteral kIsFormula = "sluice.formula";

enum class CallFlow {
  Fixed,   ///< each call has the value
  Rows,    ///< each call has its own rows of it
  Sum,     ///< it is the sum of the calls' values
  Mean,    ///< it is the mean of the calls' values, each weighted by its rows
  Formula, ///< it is computed from sums and means of all calls
  Own,     ///< the values of calls do not tell
};

/// How a value that is a formula is computed from scalars that are sums and means.
struct CallFormula {
  llvm::SmallVector<mlir::Value> parts;     ///< of one element each
  llvm::SmallVector<mlir::Operation *> ops; ///< that compute the value from them, in their order
};

/// The flows of a graph's values outside of training.
class CallFlows {
public:
  /// In a graph without `?`, dimension 0 of the inputs counts as that of the rows.
  explicit CallFlows(GraphOp graph);

  CallFlow of(mlir::Value value) const { return flows.lookup(value); }
  /// The formula of a value; nothing if it also depends on anything else. With `parts`, these are its parts; without, sums
  /// and means are.
  std::optional<CallFormula> formulaOf(mlir::Value value, mlir::ValueRange parts = {}) const;
  /// How a metric is that of all rows: Mean, Sum, Formula with the formula, or Own. In a graph without `?`, where all calls have
  /// as many rows, a metric is a Mean unless it is declared to be a formula.
  std::pair<CallFlow, CallFormula> figureOf(mlir::Value value, bool isDeclared) const;

private:
  bool hasRows(mlir::Value value) const;
  void classify(mlir::Block &block);
  void classify(mlir::Operation &op);
  CallFlow flowOfNested(mlir::Operation &op);
  CallFlow flowOfWhole(mlir::Operation &op) const;
  CallFlow flowOfRows(mlir::Operation &op, mlir::Value result) const;
  bool collect(mlir::Value value, mlir::ValueRange parts, llvm::SetVector<mlir::Value> &found,
               llvm::SetVector<mlir::Operation *> &ops) const;

  bool isStatic;
  llvm::DenseMap<mlir::Value, CallFlow> flows; ///< absent: Fixed
};

} // namespace sluice::ir
