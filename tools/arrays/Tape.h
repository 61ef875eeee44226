// Recorded calls, which `backward` differentiates.
#pragma once

#include "tools/arrays/Calls.h"

namespace sluice::detail {

struct RecordedCall {
  /// The function; null: a copy to the device of the result.
  const CachedCall *cached = nullptr;
  std::vector<ArrayValue> operands;
  /// For each operand: the array, if it has a gradient and no call; else null.
  std::vector<std::shared_ptr<ArrayImpl>> leaves;
  std::vector<ArrayValue> results; ///< without their call, which is this one
  runtime::CallSite site;

  RecordedCall() = default;
  RecordedCall(const RecordedCall &) = delete;
  ~RecordedCall();
};

/// Records a copy, if `from` has a gradient.
void recordCopy(const Array &from, Array &to, const char *function, std::source_location where);

} // namespace sluice::detail
