// Writes the text of a plan, which `readPlan` reads back to an equal plan.
#pragma once

#include "runtime/plan/Plan.h"

namespace sluice::runtime {

/// One line of JSON in the format of PLAN.md. Omits fields with default values where PLAN.md permits.
std::string writePlan(const Plan &plan);

} // namespace sluice::runtime
