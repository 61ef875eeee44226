// A placement as one HTML page that works offline: `sluice place --html`.
#pragma once

#include <string>

namespace sluice::place {

/// The page of `report`, the output of `sluice place --json`, and of `measured`, the "schedule" of `bench --json` or
/// "null". Both are JSON of untrusted origin: their strings are shown as text and never interpreted. The comment in
/// Page.cpp lists the fields; absent fields are not shown.
std::string placementPage(const std::string &report, const std::string &measured = "null");

} // namespace sluice::place
