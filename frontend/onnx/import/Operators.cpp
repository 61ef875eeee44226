#include "frontend/onnx/import/Operators.h"

#include <map>
#include <set>

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

/// Appends words, separated by commas, in lines of at most 120 characters.
static void appendWrapped(std::string &text, const std::set<std::string_view> &words) {
  std::size_t length = text.size() - text.find_last_of('\n') - 1;
  bool isFirst = true;
  for (std::string_view word : words) {
    if (!isFirst && length + word.size() + 3 > 120) {
      text += ",\n";
      length = 0;
    } else if (!isFirst) {
      text += ", ";
      length += 2;
    }
    text += word;
    length += word.size();
    isFirst = false;
  }
}

std::string describeOperators() {
  std::map<std::string_view, std::set<std::string_view>> domains;
  for (const Operator &row : kOperators)
    domains[row.domain].insert(row.name);
  std::string text;
  for (const auto &[domain, names] : domains) {
    text += text.empty() ? "" : "\n";
    text += (domain.empty() ? "ONNX" : std::string(domain)) + ", " + std::to_string(names.size()) +
            (names.size() == 1 ? " operator: " : " operators: ");
    appendWrapped(text, names);
    text += ".\n";
  }
  return text;
}

const Operator *findOperator(std::string_view domain, std::string_view name, std::int64_t version) {
  const Operator *best = nullptr;
  for (const Operator &row : kOperators)
    if (row.name == name && row.domain == domain && row.since <= version && (!best || row.since > best->since))
      best = &row;
  return best;
}

} // namespace sluice::onnx
