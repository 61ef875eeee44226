// Puts a decision into words and figures.
#pragma once

#include "tools/compiler/placement/Candidates.h"
#include "tools/compiler/placement/report/Report.h"

namespace sluice::compiler {

/// What was searched.
struct SearchSummary {
  int64_t leastSum = 0;               ///< no placement's work and copies take less in all, picoseconds
  std::optional<int64_t> assignments; ///< there are; none if more than can be counted
  int64_t judged = 0;                 ///< of them
};

PlacementReport describePlacement(const PlacementSetting &setting, const Candidate &chosen,
                                  llvm::ArrayRef<Candidate> candidates, const SearchSummary &search);

} // namespace sluice::compiler
