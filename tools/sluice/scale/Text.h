// A scaling curve as a table, for a terminal.
#pragma once

#include "tools/compiler/scale/Scaling.h"
#include "llvm/Support/raw_ostream.h"

namespace sluice::tool {

void printScaling(llvm::raw_ostream &out, const compiler::ScalingReport &report);

} // namespace sluice::tool
