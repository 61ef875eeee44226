// Losses, and the optimizers of the domain ai.onnx.preview.training.
#include "frontend/onnx/import/Operators.h"
#include "sluice/ops.h"

#include <string>

namespace sluice::onnx {

//===- losses -----------------------------------------------------------------------------------------------------===//

/// The attributes and the weight that both losses have.
static NllLossOptions lossOptions(Node &node) {
  NllLossOptions options;
  std::string reduction = node.text("reduction", "mean");
  if (reduction != "mean" && reduction != "sum" && reduction != "none")
    Node::fail("reduction '" + reduction + "' is not supported");
  options.reduction = reduction == "mean" ? Reduction::mean : reduction == "sum" ? Reduction::sum : Reduction::none;
  if (node.hasAttribute("ignore_index"))
    options.ignore_index = node.integer("ignore_index", 0);
  if (node.has(2))
    options.weight = node.tensor(2);
  return options;
}

void negativeLogLikelihoodLoss(Node &node) { node.set(0, nll_loss(node.tensor(0), node.tensor(1), lossOptions(node))); }

void softmaxCrossEntropyLoss(Node &node) {
  NllLossOptions options = lossOptions(node);
  Tensor scores = node.tensor(0);
  node.set(0, cross_entropy(
                  scores, node.tensor(1),
                  {.weight = options.weight, .ignore_index = options.ignore_index, .reduction = options.reduction}));
  if (node.wants(1))
    node.set(1, log_softmax(scores, 1));
}

//===- optimizers -------------------------------------------------------------------------------------------------===//

namespace {

/// The inputs of an optimizer: the learning rate, the number of updates, and for each state, one tensor per parameter. The
/// states are the parameter, its gradient, and those of the optimizer.
class OptimizerInputs {
public:
  OptimizerInputs(Node &node, std::size_t states) : node(node) {
    if (node.inputs() < 2 + states || (node.inputs() - 2) % states != 0)
      Node::fail(std::to_string(node.inputs()) + " inputs");
    count = (node.inputs() - 2) / states;
  }

  Tensor rate() { return node.tensor(0).reshape({}); }
  Tensor updates(DType dtype) { return node.tensor(1).reshape({}).to(dtype); }
  /// The gradient of a parameter, with that of the norm of the parameter.
  Tensor gradient(std::size_t parameter) {
    double coefficient = node.real("norm_coefficient", 0.0);
    Tensor gradient = state(1, parameter);
    return coefficient == 0.0 ? gradient : coefficient * state(0, parameter) + gradient;
  }
  Tensor state(std::size_t number, std::size_t parameter) { return node.tensor(2 + number * count + parameter); }
  /// Result `number` of each parameter.
  void set(std::size_t number, std::size_t parameter, const Tensor &x) { node.set(number * count + parameter, x); }

  std::size_t count = 0; ///< of parameters

private:
  Node &node;
};

} // namespace

void momentumStep(Node &node) {
  OptimizerInputs in(node, 3);
  double alpha = node.real("alpha", 0.0), beta = node.real("beta", 0.0);
  std::string mode = node.text("mode", "");
  if (mode != "standard" && mode != "nesterov")
    Node::fail("mode '" + mode + "' is not supported");
  for (std::size_t i = 0; i < in.count; ++i) {
    Tensor x = in.state(0, i), gradient = in.gradient(i);
    Tensor scale = where(in.updates(x.dtype()) > 0.0, full_like(in.updates(x.dtype()), beta), 1.0);
    Tensor momentum = alpha * in.state(2, i) + scale * gradient;
    in.set(0, i, x - in.rate() * (mode == "nesterov" ? gradient + alpha * momentum : momentum));
    in.set(1, i, momentum);
  }
}

void adamStep(Node &node) {
  OptimizerInputs in(node, 4);
  double alpha = node.real("alpha", 0.9f), beta = node.real("beta", 0.999f), epsilon = node.real("epsilon", 1e-6f);
  double after = node.real("norm_coefficient_post", 0.0);
  for (std::size_t i = 0; i < in.count; ++i) {
    Tensor x = in.state(0, i), gradient = in.gradient(i), updates = in.updates(x.dtype());
    Tensor mean = alpha * in.state(2, i) + (1 - alpha) * gradient;
    Tensor squares = beta * in.state(3, i) + (1 - beta) * gradient * gradient;
    Tensor correction = sluice::sqrt(1.0 - pow(beta, updates)) / (1.0 - pow(alpha, updates));
    Tensor rate = in.rate() * where(updates > 0.0, correction, 1.0);
    Tensor y = x - rate * mean / (sluice::sqrt(squares) + epsilon);
    in.set(0, i, after == 0.0 ? y : (1 - after) * y);
    in.set(1, i, mean);
    in.set(2, i, squares);
  }
}

void adagradStep(Node &node) {
  OptimizerInputs in(node, 3);
  double decay = node.real("decay_factor", 0.0), epsilon = node.real("epsilon", 1e-6f);
  for (std::size_t i = 0; i < in.count; ++i) {
    Tensor x = in.state(0, i), gradient = in.gradient(i);
    Tensor squares = in.state(2, i) + gradient * gradient;
    Tensor rate = in.rate() / (1.0 + decay * in.updates(x.dtype()));
    in.set(0, i, x - rate * gradient / (sluice::sqrt(squares) + epsilon));
    in.set(1, i, squares);
  }
}

} // namespace sluice::onnx
