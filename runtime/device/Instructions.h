// The instruction set of the machine that runs, beside the one that a model's code was made with.
#pragma once

#include "runtime/plan/Plan.h"

namespace sluice::runtime {

/// Refuses code that needs an extension, by LLVM's name of it, that this machine does not have or that this runtime
/// does not know: else it would end in an illegal instruction.
void checkInstructions(const Build &build);

} // namespace sluice::runtime
