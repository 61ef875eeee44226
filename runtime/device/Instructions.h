// Checks this machine's instruction set against that of the model's code.
#pragma once

#include "runtime/plan/Plan.h"

namespace sluice::runtime {

/// Rejects code that requires an extension, by LLVM's name, that this machine lacks or this runtime does not recognize.
/// Otherwise the code would end in an illegal instruction.
void checkInstructions(const Build &build);

} // namespace sluice::runtime
