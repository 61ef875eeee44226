// The table of operators.
#pragma once

#include "frontend/onnx/import/Node.h"

#include <string>
#include <string_view>

namespace sluice::onnx {

/// Emits a node through the graph API, and sets its results.
using Handler = void (*)(Node &);
/// Computes a node whose inputs are all known or sizes; false if it cannot: the node is then folded or emitted.
using Evaluator = bool (*)(Node &);

struct Operator {
  std::string_view domain, name;
  std::int64_t since; ///< the first version of the domain that the handler covers, up to the next row
  Handler handler;
  Evaluator evaluator; ///< null: the handler is folded
  bool folds;          ///< whether known inputs make known results
};

/// The row for a version; null if there is none.
const Operator *findOperator(std::string_view domain, std::string_view name, std::int64_t version);
/// The names of all operators by domain, as Markdown.
std::string describeOperators();

#define ONNX_OPERATOR(domain, name, since, handler) void handler(Node &);
#define ONNX_EVALUATED(domain, name, since, handler, evaluator)                                                        \
  void handler(Node &);                                                                                                \
  bool evaluator(Node &);
#define ONNX_RANDOM(domain, name, since, handler) void handler(Node &);
#include "frontend/onnx/operators/Operators.def"
#undef ONNX_OPERATOR
#undef ONNX_EVALUATED
#undef ONNX_RANDOM

} // namespace sluice::onnx
