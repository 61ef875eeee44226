// Metrics over several calls: combines the calls' values to the metric of all rows.
#pragma once

#include "ir/CallFlow.h"
#include "passes/train/EntryPoint.h"
#include "llvm/ADT/MapVector.h"

namespace sluice::passes {

/// Decides how the metrics of a graph are combined over calls (ir/CallFlow.h). Steps return the required values as
/// further outputs. The runner recognizes them by name:
///
///   "f1/0", "f1/1/sum"   parts of a formula: the mean over rows, or the sum over calls
///   "total/sum"          the metric itself, which is a sum
///   "largest/calls"      the metric itself, whose only figure is a mean over calls
///
/// One entry point takes the parts and computes each formula once, in f64: @metrics("f1/0", "f1/1/sum") -> "f1".
class MetricFigures {
public:
  /// The figures of the loss, if there is one, come first; those of the `metric` ops follow.
  MetricFigures(ir::GraphOp graph, mlir::Value loss);

  /// The values that steps return, metrics first.
  llvm::ArrayRef<Report> reports() const { return reportList; }
  /// Adds the entry point `metrics` if a metric is a formula.
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
