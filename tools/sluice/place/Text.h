// A placement decision as text for a terminal.
#pragma once

#include "tools/compiler/placement/report/Report.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/raw_ostream.h"

namespace sluice::tool {

void printPlacement(llvm::raw_ostream &out, const compiler::PlacementReport &report);

/// The cost on each device of the groups that match `name`: a group, an op ("conv2d"), a state or a source line
/// ("lenet.cpp:20"). The error suggests the nearest name.
llvm::Expected<std::string> explainPlacement(const compiler::PlacementReport &report, llvm::StringRef name);

} // namespace sluice::tool
