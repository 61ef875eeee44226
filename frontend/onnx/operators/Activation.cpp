#include "frontend/onnx/operators/Activation.h"

#include "sluice/ops.h"

#include <algorithm>
#include <cctype>
#include <optional>

namespace sluice::onnx {

namespace {

/// A parameter of a function.
struct ActivationParameter {
  bool exists = false;
  std::optional<double> otherwise = {}; ///< that of the operator with this name, which some lack
};

struct ActivationKind {
  const char *name; ///< in lower case: models write all cases
  ActivationParameter alpha, beta;
  Activation::Function function;
};

} // namespace

static constexpr ActivationParameter kNoParameter{}, kRequired{true};

static constexpr ActivationKind kActivations[] = {
    {"affine", kRequired, kRequired, [](const Tensor &x, double a, double b) { return a * x + b; }},
    {"elu", {true, 1.0}, kNoParameter, [](const Tensor &x, double a, double) { return elu(x, a); }},
    {"hardsigmoid",
     {true, 0.2f},
     {true, 0.5},
     [](const Tensor &x, double a, double b) { return clip(a * x + b, 0.0, 1.0); }},
    {"leakyrelu", {true, 0.01}, kNoParameter, [](const Tensor &x, double a, double) { return leaky_relu(x, a); }},
    {"relu", kNoParameter, kNoParameter, [](const Tensor &x, double, double) { return relu(x); }},
    {"scaledtanh", kRequired, kRequired, [](const Tensor &x, double a, double b) { return a * sluice::tanh(b * x); }},
    {"sigmoid", kNoParameter, kNoParameter, [](const Tensor &x, double, double) { return sigmoid(x); }},
    {"softplus", kNoParameter, kNoParameter, [](const Tensor &x, double, double) { return softplus(x); }},
    {"softsign", kNoParameter, kNoParameter,
     [](const Tensor &x, double, double) { return x / (1.0 + sluice::abs(x)); }},
    {"tanh", kNoParameter, kNoParameter, [](const Tensor &x, double, double) { return sluice::tanh(x); }},
    {"thresholdedrelu",
     {true, 1.0},
     kNoParameter,
     [](const Tensor &x, double a, double) { return where(x > a, x, 0.0); }},
};

static const ActivationKind &activationNamed(const std::string &name) {
  std::string lower = name;
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return std::tolower(c); });
  for (const ActivationKind &kind : kActivations)
    if (lower == kind.name)
      return kind;
  Node::fail("the activation '" + name + "' is not supported");
}

/// The value of a parameter. Only functions that have the parameter take a number of the list.
static double parameterOf(const ActivationParameter &parameter, const std::vector<double> &list, std::size_t &next,
                          const std::string &name) {
  if (!parameter.exists)
    return 0;
  if (next < list.size())
    return list[next++];
  if (!parameter.otherwise)
    Node::fail("the activation '" + name + "' has no activation_alpha or activation_beta");
  return *parameter.otherwise;
}

std::vector<Activation> activationsOf(const Node &node, std::int64_t directions,
                                      std::span<const char *const> defaults) {
  std::vector<std::string> names = node.texts("activations");
  for (std::int64_t i = 0; i < directions && !node.hasAttribute("activations"); ++i)
    names.insert(names.end(), defaults.begin(), defaults.end());
  if (names.size() != std::size_t(directions) * defaults.size())
    Node::fail(std::to_string(names.size()) + " activations are given, not " +
               std::to_string(std::size_t(directions) * defaults.size()));
  std::vector<double> alphas = node.reals("activation_alpha"), betas = node.reals("activation_beta");
  std::size_t alpha = 0, beta = 0;
  std::vector<Activation> functions;
  for (const std::string &name : names) {
    const ActivationKind &kind = activationNamed(name);
    double a = parameterOf(kind.alpha, alphas, alpha, name);
    functions.emplace_back(kind.function, a, parameterOf(kind.beta, betas, beta, name));
  }
  return functions;
}

} // namespace sluice::onnx
