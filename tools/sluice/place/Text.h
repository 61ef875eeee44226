// A placement decision in words, for a terminal.
#pragma once

#include "tools/compiler/placement/report/Report.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/raw_ostream.h"

namespace sluice::tool {

void printPlacement(llvm::raw_ostream &out, const compiler::PlacementReport &report);

/// What each device would have cost for the groups that `name` means: a group, an op ("conv2d"), a state or a source
/// line ("lenet.cpp:20"). The error names what is nearest.
llvm::Expected<std::string> explainPlacement(const compiler::PlacementReport &report, llvm::StringRef name);

} // namespace sluice::tool
