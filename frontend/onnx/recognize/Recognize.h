// Layers that a file decomposes into several nodes. A pattern looks at the last of these nodes, and emits the layer from
// the inputs of the first. The ops of the other nodes then have no use, unless other nodes read their results; the
// importer removes ops without a use.
#pragma once

#include "frontend/onnx/import/Node.h"

#include <optional>
#include <string_view>
#include <vector>

namespace sluice::onnx {

/// Emits a layer whose last node is this one; false if no pattern fits.
bool recognize(Node &node);

// --- for patterns

/// The single element of a known input; nothing for other inputs.
std::optional<double> numberAt(const Node &node, std::size_t input);
/// Whether two numbers agree to 1e-3: exporters round constants.
bool isAbout(std::optional<double> number, double expected);
/// The operands of a product, of which factors may be products themselves. Known numbers are multiplied into `scale`.
/// A division by a known number is a factor.
struct Factors {
  double scale = 1;
  std::vector<ValuePtr> values;
  int products = 0; ///< nodes of products so far
  /// Removes a value; false if it is no factor.
  bool take(const ValuePtr &value);
};
/// The factors of a Mul or Div.
Factors factorsOf(const Node &node);
/// The factors of a value; itself if no Mul or Div computes it.
Factors factorsOf(const Node &reader, std::size_t input);

#define ONNX_PATTERN(op, function) bool function(Node &node);
#include "frontend/onnx/recognize/Patterns.def"
#undef ONNX_PATTERN

} // namespace sluice::onnx
