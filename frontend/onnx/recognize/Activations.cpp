// Activations of several nodes. Each has the form x * f(x), with the factors in any order.
#include "frontend/onnx/recognize/Recognize.h"
#include "sluice/ops.h"

#include <cmath>
#include <numbers>

namespace sluice::onnx {

/// t of the sum t + 1.
static std::optional<std::pair<Node, std::size_t>> lessOne(const Node &reader, const ValuePtr &value) {
  std::optional<Node> sum = reader.producer(value, "Add");
  for (std::size_t one : {0, 1})
    if (sum && isAbout(numberAt(*sum, one), 1))
      return std::pair(*sum, 1 - one);
  return std::nullopt;
}

/// Whether an input is sqrt(2 / pi) * (x + 0.044715 x^3).
static bool isGeluArgument(const Node &reader, std::size_t input, const ValuePtr &x) {
  Factors factors = factorsOf(reader, input);
  if (!isAbout(factors.scale, std::sqrt(2 / std::numbers::pi)) || factors.values.size() != 1)
    return false;
  std::optional<Node> sum = reader.producer(factors.values.front(), "Add");
  for (std::size_t linear : {0, 1}) {
    if (!sum || sum->inputValue(linear) != x)
      continue;
    Factors cubic = factorsOf(*sum, 1 - linear);
    if (!isAbout(cubic.scale, 0.044715))
      return false;
    if (cubic.values.size() == 1) {
      std::optional<Node> power = sum->producer(cubic.values.front(), "Pow");
      return power && power->inputValue(0) == x && isAbout(numberAt(*power, 1), 3);
    }
    return cubic.values.size() == 3 && cubic.take(x) && cubic.take(x) && cubic.take(x);
  }
  return false;
}

/// 0.5 * x * (1 + erf(x / sqrt(2))), or the approximation by tanh.
bool recognizeGelu(Node &node) {
  Factors factors = factorsOf(node);
  if (factors.values.size() != 2 || !isAbout(factors.scale, 0.5))
    return false;
  for (std::size_t i : {0, 1}) {
    const ValuePtr &x = factors.values[1 - i];
    auto inner = lessOne(node, factors.values[i]);
    if (!inner)
      continue;
    if (std::optional<Node> erf = inner->first.producer(inner->second, "Erf")) {
      Factors argument = factorsOf(*erf, 0);
      if (!isAbout(argument.scale, std::numbers::sqrt2 / 2) || argument.values != std::vector{x})
        continue;
      node.set(0, gelu(node.tensorOf(x)));
      return true;
    }
    std::optional<Node> tanh = inner->first.producer(inner->second, "Tanh");
    if (!tanh || !isGeluArgument(*tanh, 0, x))
      continue;
    node.set(0, gelu(node.tensorOf(x), Gelu::tanh));
    return true;
  }
  return false;
}

/// x * sigmoid(x)
bool recognizeSilu(Node &node) {
  Factors factors = factorsOf(node);
  if (factors.values.size() != 2 || factors.scale != 1)
    return false;
  for (std::size_t i : {0, 1}) {
    std::optional<Node> gate = node.producer(factors.values[i], "Sigmoid");
    if (!gate || gate->inputValue(0) != factors.values[1 - i])
      continue;
    node.set(0, silu(node.tensorOf(factors.values[1 - i])));
    return true;
  }
  return false;
}

/// The factor s of a value s * hard_sigmoid(x): 1, or 6 for clip(x + 3, 0, 6). Nothing for other values.
static std::optional<double> hardGate(const Node &node, const ValuePtr &gate, const ValuePtr &x) {
  if (std::optional<Node> hard = node.producer(gate, "HardSigmoid")) {
    bool isUsual = isAbout(hard->real("alpha", 0.2), 1.0 / 6) && hard->real("beta", 0.5) == 0.5;
    return isUsual && hard->inputValue(0) == x ? std::optional(1.0) : std::nullopt;
  }
  std::optional<Node> clip = node.producer(gate, "Clip");
  std::optional<Node> sum = clip ? clip->producer(0, "Add") : std::nullopt;
  if (!sum)
    return std::nullopt;
  auto bound = [&](std::size_t input, const char *name) {
    return clip->opset() < 11 ? clip->real(name, -1) : numberAt(*clip, input).value_or(-1);
  };
  bool isShifted =
      (sum->inputValue(0) == x && numberAt(*sum, 1) == 3.0) || (sum->inputValue(1) == x && numberAt(*sum, 0) == 3.0);
  return isShifted && bound(1, "min") == 0 && bound(2, "max") == 6 ? std::optional(6.0) : std::nullopt;
}

/// x * clip(x + 3, 0, 6) / 6
bool recognizeHardSwish(Node &node) {
  Factors factors = factorsOf(node);
  if (factors.values.size() != 2)
    return false;
  for (std::size_t i : {0, 1}) {
    const ValuePtr &x = factors.values[1 - i];
    std::optional<double> gate = hardGate(node, factors.values[i], x);
    if (!gate || !isAbout(*gate * factors.scale, 1))
      continue;
    node.set(0, hardswish(node.tensorOf(x)));
    return true;
  }
  return false;
}

} // namespace sluice::onnx
