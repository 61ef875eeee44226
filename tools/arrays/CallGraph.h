// The graph in which a function of arrays is traced.
#pragma once

#include "frontend/graph/GraphImpl.h"
#include "tools/arrays/Calls.h"
#include <vector>

namespace sluice::detail {

/// A graph with an input for each operand of a call.
class CallGraph {
public:
  explicit CallGraph(const CompileRequest &request);

  /// Traces the function with the inputs. The operands of `models` follow those of the function. Adds other models that
  /// the function calls, and new states of models. Returns whether it added any, because these have no operands yet.
  bool trace(const Trace &function, std::vector<CapturedModel> &models);

  /// Lets the compiler choose the layouts of these inputs and outputs (PassedValues.h).
  void setPassed(const std::vector<std::string> &names);
  /// The type of the array of a result.
  const ArrayType *typeOf(const Tensor &result) const;
  /// The name of a device in this graph.
  Device on(const runtime::ArrayDevice *device) const;

  const CompileRequest &request;
  std::vector<runtime::ArrayDevice *> devices;
  Graph graph;
  std::vector<Tensor> inputs, results;
  size_t ownResults = 0; ///< the number of results of the function itself, without those of models

private:
  mlir::Value newInput(const ArrayType &type);
};

/// Traces a function whose models were found by an earlier trace. The first `own` operands are those of the function;
/// the others are those of its models.
std::vector<Tensor> traceWithModels(const Trace &function, const std::vector<CapturedModel> &models,
                                    std::span<const Tensor> operands, size_t own, CaptureRequest request);

} // namespace sluice::detail
