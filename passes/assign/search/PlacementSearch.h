// Searches the fastest placement of a model.
#pragma once

#include "passes/assign/search/Candidates.h"

namespace sluice::passes {

/// The extent of the search.
struct SearchSummary {
  int64_t leastSum = 0;               ///< lower bound of all placements' work and copies, picoseconds
  std::optional<int64_t> assignments; ///< number of assignments; none if it overflows
  int64_t judged = 0;                 ///< number evaluated
};

struct SearchResult {
  std::vector<Candidate> candidates;
  std::optional<size_t> fastest, chosen; ///< candidates; none if no candidate is possible
  SearchSummary summary;
  Obstacle obstacle; ///< of a group that no device can run
};

/// Candidates are everything on one device, the user's own placement with the rest on the first device, and the fastest
/// placements by a model of their schedules (passes/assign/AssignmentSearch.h). Each is compiled up to its plan. The
/// choice is the candidate with the fastest schedule by the cost model among those whose planned memory fits. It must
/// beat everything on one device by more than the figures' uncertainty; otherwise that is taken.
SearchResult searchPlacement(PlacementSetting &setting);

} // namespace sluice::passes
