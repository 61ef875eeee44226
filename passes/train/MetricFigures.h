// Figures of several calls: what makes a metric that of all their rows.
#pragma once

#include "ir/CallFlow.h"
#include "passes/train/EntryPoint.h"
#include "llvm/ADT/MapVector.h"

namespace sluice::passes {

/// Decides how the metrics of a graph are combined over calls (ir/CallFlow.h). Steps return what that needs as further outputs,
/// whose names tell the runner:
///
///   "f1/0", "f1/1/sum"   parts of a formula: the mean over rows, or the sum over calls
///   "total/sum"          the metric itself, which is a sum
///   "largest/calls"      the metric itself, which has no figure but a mean over calls
///
/// Formulas are computed once by an entry point that takes the parts: @metrics("f1/0", "f1/1/sum") -> "f1", in f64.
class MetricFigures {
public:
  /// Of the loss, if there is one, which comes first, and of the `metric` ops.
  MetricFigures(ir::GraphOp graph, mlir::Value loss);

  /// What steps return, metrics first.
  llvm::ArrayRef<Report> reports() const { return reportList; }
  /// Adds `metrics`, if a metric is a formula.
  void addEntry(mlir::ModuleOp module, mlir::Location loc) const;

private:
  struct Formula {
    std::string name;
    mlir::Value value;
    ir::CallFormula formula;
  };

  void add(const ir::CallFlows &flows, const std::string &name, mlir::Value value, bool isDeclared);

  llvm::SmallVector<Report> reportList;
  llvm::SmallVector<Formula> formulas;
  llvm::MapVector<mlir::Value, std::string> nameOf; ///< of parts
};

} // namespace sluice::passes
