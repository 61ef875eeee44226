// The text of a plan: what `readPlan` reads back to an equal plan.
#pragma once

#include "runtime/plan/Plan.h"

namespace sluice::runtime {

/// JSON in one line, as PLAN.md describes it. What has its default value is left out where PLAN.md says that it may.
std::string writePlan(const Plan &plan);

} // namespace sluice::runtime
