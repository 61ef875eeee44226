// Tracks the inputs set for the next call and the outputs of the last call. All entry points share the memory of inputs
// and outputs. An input is valid for one call, an output until the next call of any entry point.
#pragma once

#include "runtime/plan/Plan.h"

#include <cstdint>
#include <vector>

namespace sluice::runtime {

class CallValues {
public:
  /// Records that the caller set an input with `rows` rows. `rows` is ignored if the input has no rows dimension.
  /// Invalidates the inputs of other entry points.
  void set(const Plan &plan, const Value &input, int64_t rows);
  /// Records that the caller obtained the address of an input. The caller may write to it at any time, so `checkInputs`
  /// accepts this input from now on.
  void handOut(const Plan &plan, const Value &input) { rowsOf(plan, input) = unchecked; }

  /// Throws a usage error unless every input of `entry` was set for a call with `rows` rows since the last call.
  void checkInputs(const Entry &entry, int64_t rows) const;
  /// Records a call of `entry`.
  void afterCall(const Entry &entry, int64_t rows);
  /// Throws a usage error unless the last call was of the output's entry point, with `rows` rows or more.
  void checkOutput(const Plan &plan, const Value &output, int64_t rows) const;

private:
  static constexpr int64_t notSet = -1, unchecked = 0; ///< special values in `rows_`

  /// The input's element of `rows_`. First clears `rows_` if the current inputs are those of another entry.
  int64_t &rowsOf(const Plan &plan, const Value &input);

  const Entry *filled_ = nullptr; ///< the entry of the current inputs
  std::vector<int64_t> rows_;     ///< for each input of `filled_`, the number of rows that it was set with
  const Entry *last_ = nullptr;   ///< the entry of the last call
  int64_t lastRows_ = 0;
};

} // namespace sluice::runtime
