// Describes a decision in text and figures.
#pragma once

#include "passes/assign/search/PlacementSearch.h"
#include "tools/compiler/placement/report/Report.h"

namespace sluice::compiler {

PlacementReport describePlacement(const passes::PlacementSetting &setting, const passes::Candidate &chosen,
                                  llvm::ArrayRef<passes::Candidate> candidates, const passes::SearchSummary &search);

} // namespace sluice::compiler
