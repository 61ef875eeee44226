// Describes a decision in text and figures.
#pragma once

#include "tools/compiler/placement/Candidates.h"
#include "tools/compiler/placement/report/Report.h"

namespace sluice::compiler {

/// The extent of the search.
struct SearchSummary {
  int64_t leastSum = 0;               ///< lower bound of all placements' work and copies, picoseconds
  std::optional<int64_t> assignments; ///< number of assignments; none if it overflows
  int64_t judged = 0;                 ///< number evaluated
};

PlacementReport describePlacement(const PlacementSetting &setting, const Candidate &chosen,
                                  llvm::ArrayRef<Candidate> candidates, const SearchSummary &search);

} // namespace sluice::compiler
