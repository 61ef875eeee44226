// A scaling curve as one HTML page that works offline: `sluice scale --html`.
#pragma once

#include "llvm/Support/JSON.h"
#include <string>

namespace sluice::scale {

/// The page of the output of `sluice scale --json`.
std::string scalingPage(const llvm::json::Value &report);

} // namespace sluice::scale
