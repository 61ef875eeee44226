// `--trace`: the times of all work in the trace event format, for chrome://tracing and Perfetto.
#pragma once

#include "runtime/device/WorkTimes.h"
#include "runtime/plan/Plan.h"

#include <string>
#include <vector>

namespace sluice::runtime {

/// One track per queue. Kernels, copies and collectives carry their source lines; copies and collectives also their
/// bytes. Times are relative to the first piece of work. For backends without a clock, events show the time of the
/// enqueue.
std::string traceText(const Plan &plan, const std::vector<WorkTime> &times);

} // namespace sluice::runtime
