// The activation functions of recurrent operators.
#pragma once

#include "frontend/onnx/import/Node.h"

#include <span>
#include <string>
#include <vector>

namespace sluice::onnx {

/// One function, such as "LeakyRelu" with its alpha.
class Activation {
public:
  using Function = Tensor (*)(const Tensor &x, double alpha, double beta);
  Activation(Function function, double alpha, double beta) : function(function), alpha(alpha), beta(beta) {}

  Tensor operator()(const Tensor &x) const { return function(x, alpha, beta); }

private:
  Function function;
  double alpha, beta;
};

/// The functions of a node for all of its directions, of which each has `defaults.size()`. Throws Unsupported for names
/// that do not exist, for another number of them, and for parameters without a default that the node lacks.
std::vector<Activation> activationsOf(const Node &node, std::int64_t directions, std::span<const char *const> defaults);

} // namespace sluice::onnx
