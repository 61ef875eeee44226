// Whether training draws the order of the rows: an attribute of `sluice.model`, which no phase reads and the plan hands on.
#pragma once

#include "llvm/ADT/StringRef.h"

namespace sluice::ir {

/// A bool; absent where the model does not say.
inline constexpr llvm::StringLiteral kShuffleAttr = "sluice.shuffle";

} // namespace sluice::ir
