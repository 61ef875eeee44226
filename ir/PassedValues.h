// Values that functions of arrays pass to each other.
#pragma once

#include "llvm/ADT/StringRef.h"

namespace sluice::ir {

/// On `sluice.model`, for a function of arrays: the names of inputs and outputs that no user reads, only other functions
/// of arrays. On the host, the compiler chooses their layout.
inline constexpr llvm::StringLiteral kPassedAttr = "sluice.passed";

} // namespace sluice::ir
