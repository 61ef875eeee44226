// Whether training shuffles the rows: an attribute of `sluice.model`. No phase reads the attribute; the plan contains
// it.
#pragma once

#include "llvm/ADT/StringRef.h"

namespace sluice::ir {

/// A bool; absent if the model does not specify it.
inline constexpr llvm::StringLiteral kShuffleAttr = "sluice.shuffle";

} // namespace sluice::ir
