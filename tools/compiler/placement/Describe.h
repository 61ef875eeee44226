// Puts a decision into words and figures.
#pragma once

#include "tools/compiler/placement/Candidates.h"
#include "tools/compiler/placement/Report.h"

namespace sluice::compiler {

/// `objective` is the decision's cost and the least that any placement has, in picoseconds.
PlacementReport describePlacement(const PlacementSetting &setting, const Candidate &chosen,
                                  llvm::ArrayRef<Candidate> candidates, std::pair<int64_t, int64_t> objective);

} // namespace sluice::compiler
