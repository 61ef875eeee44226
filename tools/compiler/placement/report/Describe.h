// Describes a decision in text and figures.
#pragma once

#include "tools/compiler/placement/PlacementSearch.h"
#include "tools/compiler/placement/report/Report.h"

namespace sluice::compiler {

PlacementReport describePlacement(const PlacementSetting &setting, const Candidate &chosen,
                                  llvm::ArrayRef<Candidate> candidates, const SearchSummary &search);

} // namespace sluice::compiler
