// Recorded calls, which `backward` differentiates.
#pragma once

#include "tools/arrays/Calls.h"

namespace sluice::detail {

struct RecordedCall {
  /// The compiled function; null for a copy to the device of the result.
  const CachedCall *cached = nullptr;
  std::vector<ArrayValue> operands;
  /// For each operand: its array if that is a leaf (attach_grad); none otherwise. Weak, because a leaf that changes in
  /// place under a tape refers to its call.
  std::vector<std::weak_ptr<ArrayImpl>> leaves;
  std::vector<ArrayValue> results; ///< without `call`, which would be a cycle
  runtime::CallSite site;

  RecordedCall() = default;
  RecordedCall(const RecordedCall &) = delete;
  ~RecordedCall();
};

/// Records a copy between devices if `from` has a gradient.
void recordCopy(const Array &from, Array &to, const char *function, std::source_location where);

} // namespace sluice::detail
