// `--trace`: the times of all work as a file in the trace event format, for chrome://tracing and Perfetto.
#pragma once

#include "runtime/device/WorkTimes.h"
#include "runtime/plan/Plan.h"

#include <string>
#include <vector>

namespace sluice::runtime {

/// One track for each queue; kernels, copies and collectives are named with their source lines, the latter two with
/// their bytes. Times begin
/// with the first piece of work. Backends without a clock show when the host put work into their queues.
std::string traceText(const Plan &plan, const std::vector<WorkTime> &times);

} // namespace sluice::runtime
