// A scaling curve as one HTML page that a browser shows without a network: `sluice scale --html`.
#pragma once

#include "llvm/Support/JSON.h"
#include <string>

namespace sluice::scale {

/// The page of what `sluice scale --json` prints.
std::string scalingPage(const llvm::json::Value &report);

} // namespace sluice::scale
