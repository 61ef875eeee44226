// Checks this machine's instruction set against that of the model's code.
#pragma once

#include "runtime/plan/Plan.h"

namespace sluice::runtime {

/// Throws an unsupported error if the code requires an instruction-set extension, by LLVM's name, that this machine
/// lacks or that this runtime does not recognize. Otherwise the code would end in an illegal instruction.
void checkInstructions(const Build &build);

} // namespace sluice::runtime
