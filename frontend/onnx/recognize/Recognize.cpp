#include "frontend/onnx/recognize/Recognize.h"

#include <algorithm>
#include <cmath>

namespace sluice::onnx {

namespace {

struct Pattern {
  std::string_view op;
  bool (*function)(Node &);
};

} // namespace

static constexpr Pattern kPatterns[] = {
#define ONNX_PATTERN(op, function) {op, function},
#include "frontend/onnx/recognize/Patterns.def"
#undef ONNX_PATTERN
};

bool recognize(Node &node) {
  for (std::size_t i = 0; i < node.inputs(); ++i)
    if (!node.has(i))
      return false;
  return std::ranges::any_of(kPatterns,
                             [&](const Pattern &pattern) { return pattern.op == node.op() && pattern.function(node); });
}

std::optional<double> numberAt(const Node &node, std::size_t input) {
  const Known *known = node.known(input);
  bool fits = known && known->count() == 1;
  for (std::size_t i = 0; i < node.inputs(); ++i) // a number of a higher rank would change the rank of the result
    fits = fits && (!node.has(i) || known->rank() <= node.rank(i));
  return fits ? std::optional(known->real(0)) : std::nullopt;
}

bool isAbout(std::optional<double> number, double expected) {
  return number && std::abs(*number - expected) <= 1e-3 * std::abs(expected);
}

bool Factors::take(const ValuePtr &value) {
  auto found = std::ranges::find(values, value);
  if (found == values.end())
    return false;
  values.erase(found);
  return true;
}

/// Products of more nodes belong to no pattern; files may have long chains of them.
static constexpr int kMostProducts = 16;

static void addFactors(const Node &node, Factors &factors);

static void addFactor(const Node &reader, std::size_t input, Factors &factors) {
  if (std::optional<double> number = numberAt(reader, input))
    factors.scale *= *number;
  else if (auto product = reader.producer(input, "Mul"); product && ++factors.products < kMostProducts)
    addFactors(*product, factors);
  else if (auto quotient = reader.producer(input, "Div");
           quotient && numberAt(*quotient, 1) && ++factors.products < kMostProducts)
    addFactors(*quotient, factors);
  else
    factors.values.push_back(reader.inputValue(input));
}

static void addFactors(const Node &node, Factors &factors) {
  addFactor(node, 0, factors);
  if (node.op() == "Mul")
    addFactor(node, 1, factors);
  else if (std::optional<double> divisor = numberAt(node, 1))
    factors.scale /= *divisor;
}

Factors factorsOf(const Node &node) {
  Factors factors;
  if (node.inputs() == 2 && isFloat(node.type(0)) && (node.op() == "Mul" || numberAt(node, 1)))
    addFactors(node, factors);
  return factors;
}

Factors factorsOf(const Node &reader, std::size_t input) {
  Factors factors;
  addFactor(reader, input, factors);
  return factors;
}

} // namespace sluice::onnx
