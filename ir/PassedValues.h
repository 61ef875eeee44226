// Values that functions of arrays pass to each other.
#pragma once

#include "llvm/ADT/StringRef.h"

namespace sluice::ir {

/// An attribute of `sluice.model`: the names of inputs and outputs that functions of arrays pass to each other. No user
/// reads them. On the host, the compiler chooses their layout.
inline constexpr llvm::StringLiteral kPassedAttr = "sluice.passed";

} // namespace sluice::ir
