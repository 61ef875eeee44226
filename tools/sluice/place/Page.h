// A placement as one HTML page that a browser shows without a network: `sluice place --html`.
#pragma once

#include "llvm/Support/JSON.h"
#include <optional>
#include <string>

namespace sluice::place {

/// The page of `report`, what `sluice place --json` prints, and of `measured`, the "schedule" of `bench --json`. Both
/// come from files that nobody vouches for: whatever their strings hold stays text. See the note in Page.cpp for the
/// fields that the page reads; what is absent is not shown.
std::string placementPage(const llvm::json::Value &report,
                          const std::optional<llvm::json::Value> &measured = std::nullopt);

} // namespace sluice::place
