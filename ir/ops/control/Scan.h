// What a scan may be told beside what it does.
#pragma once

#include "llvm/ADT/StringRef.h"

namespace sluice::ir {

/// An attribute of a scan whose gradient computes again what it needs of a step, but for what is carried, instead of having it
/// kept. It changes no value.
inline constexpr llvm::StringLiteral kRecompute = "sluice.recompute";

} // namespace sluice::ir
