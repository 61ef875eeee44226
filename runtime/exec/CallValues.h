// What the caller has set for the next call, and what the last call left. All entry points share the memory of inputs
// and outputs: an input is good for one call, an output until the next call of any entry point.
#pragma once

#include "runtime/plan/Plan.h"

#include <cstdint>
#include <vector>

namespace sluice::runtime {

class CallValues {
public:
  /// The caller has set an input with `rows` rows, which do not count where it has no rows dimension. Inputs of other
  /// entry points are no longer set.
  void set(const Plan &plan, const Value &input, int64_t rows);
  /// The caller has the address of an input and fills it without a word, so that calls take it as it is.
  void handOut(const Plan &plan, const Value &input) { rowsOf(plan, input) = unchecked; }

  /// A usage error unless every input of `entry` has been set for a call with `rows` rows since the last call.
  void checkInputs(const Entry &entry, int64_t rows) const;
  /// A call of `entry` is made.
  void afterCall(const Entry &entry, int64_t rows);
  /// A usage error unless the last call was one of the output's entry point, with `rows` rows or more.
  void checkOutput(const Plan &plan, const Value &output, int64_t rows) const;

private:
  static constexpr int64_t notSet = -1, unchecked = 0;

  int64_t &rowsOf(const Plan &plan, const Value &input);

  const Entry *filled_ = nullptr; ///< whose inputs are being set
  std::vector<int64_t> rows_;     ///< that each of its inputs was set with
  const Entry *last_ = nullptr;   ///< that ran
  int64_t lastRows_ = 0;
};

} // namespace sluice::runtime
