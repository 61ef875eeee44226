// The graph that a function of arrays is traced in.
#pragma once

#include "frontend/graph/GraphImpl.h"
#include "tools/arrays/Calls.h"
#include <vector>

namespace sluice::detail {

/// A graph with an input for each operand of a call.
class CallGraph {
public:
  explicit CallGraph(const CompileRequest &request);

  /// Calls the function with the inputs. `models`: those whose operands follow the function's. Adds others that it calls,
  /// and takes new states; returns whether there are any, which have no operands yet.
  bool trace(const Trace &function, std::vector<CapturedModel> &models);

  /// Lets the compiler choose the order of elements of inputs and outputs that no user sees.
  void setPassed(const std::vector<std::string> &names);
  /// The type of the array of a result.
  const ArrayType *typeOf(const Tensor &result) const;
  /// The name of a device in this graph.
  Device on(const runtime::ArrayDevice *device) const;

  const CompileRequest &request;
  std::vector<runtime::ArrayDevice *> devices;
  Graph graph;
  std::vector<Tensor> inputs, results;
  size_t ownResults = 0; ///< the number of results that are not those of models

private:
  mlir::Value newInput(const ArrayType &type);
};

/// Calls a function with its own operands. Its models have the operands after those.
std::vector<Tensor> traceWithModels(const Trace &function, const std::vector<CapturedModel> &models,
                                    std::span<const Tensor> operands, size_t own, CaptureRequest request);

} // namespace sluice::detail
