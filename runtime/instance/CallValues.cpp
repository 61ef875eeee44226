#include "runtime/instance/CallValues.h"

#include "runtime/base/Status.h"
#include "runtime/base/Text.h"

#include <algorithm>

namespace sluice::runtime {

int64_t &CallValues::rowsOf(const Plan &plan, const Value &input) {
  const Entry &entry = plan.entries[input.entry];
  if (filled_ != &entry)
    rows_.assign(entry.inputs.size(), notSet);
  filled_ = &entry;
  return rows_[static_cast<size_t>(&input - entry.inputs.data())];
}

void CallValues::set(const Plan &plan, const Value &input, int64_t rows) {
  rowsOf(plan, input) = input.rowsDim >= 0 ? rows : 1;
}

/// The error of an input that a call needs and that was not set.
[[noreturn]] static void failMissing(const Entry &entry, const Value &input) {
  if (entry.name == "init") // its only input
    failUsage(concat("'init' draws random numbers and has no seed: set its input ", quote(input.name),
                     ", of type i32[2], to the high and the low 32 bits of a seed before each call"));
  failUsage(concat(quote(entry.name), " needs the input ", quote(input.name),
                   ", which has not been set since the last call: set it before each call"));
}

void CallValues::checkInputs(const Entry &entry, int64_t rows) const {
  for (size_t i = 0; i < entry.inputs.size(); ++i) {
    const Value &input = entry.inputs[i];
    int64_t set = filled_ == &entry ? rows_[i] : notSet;
    if (set == notSet && input.isUnread)
      continue;
    if (set == notSet)
      failMissing(entry, input);
    if (set != unchecked && input.rowsDim >= 0 && set != rows)
      failUsage(concat("input ", quote(input.name), " was set with ", set, " rows, and the call has ", rows));
  }
}

void CallValues::afterCall(const Entry &entry, int64_t rows) {
  std::replace_if(rows_.begin(), rows_.end(), [](int64_t set) { return set != unchecked; }, notSet);
  last_ = &entry;
  lastRows_ = rows;
}

void CallValues::checkOutput(const Plan &plan, const Value &output, int64_t rows) const {
  const Entry &entry = plan.entries[output.entry];
  if (last_ != &entry)
    failUsage(concat("there is no output ", quote(output.name), " of ", quote(entry.name), ": ",
                     last_ ? concat("the last call was one of ", quote(last_->name)) : "nothing has run yet"));
  if (output.rowsDim >= 0 && rows > lastRows_)
    failUsage(concat("output ", quote(output.name), " has the ", lastRows_, " rows of the last call, and ", rows,
                     " were asked for"));
}

} // namespace sluice::runtime
