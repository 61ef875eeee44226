#include "frontend/onnx/import/Operators.h"

namespace sluice::onnx {

static constexpr Operator kOperators[] = {
#define ONNX_OPERATOR(domain, name, since, handler) {domain, name, since, handler, nullptr, true},
#define ONNX_EVALUATED(domain, name, since, handler, evaluator) {domain, name, since, handler, evaluator, true},
#define ONNX_RANDOM(domain, name, since, handler) {domain, name, since, handler, nullptr, false},
#include "frontend/onnx/operators/Operators.def"
#undef ONNX_OPERATOR
#undef ONNX_EVALUATED
#undef ONNX_RANDOM
};

std::span<const Operator> allOperators() { return kOperators; }

const Operator *findOperator(std::string_view domain, std::string_view name, std::int64_t version) {
  const Operator *best = nullptr;
  for (const Operator &row : kOperators)
    if (row.name == name && row.domain == domain && row.since <= version && (!best || row.since > best->since))
      best = &row;
  return best;
}

} // namespace sluice::onnx
