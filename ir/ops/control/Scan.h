// Optional attributes of a scan.
#pragma once

#include "llvm/ADT/StringRef.h"

namespace sluice::ir {

/// An attribute of a scan whose gradient recomputes the values of a step, except carried ones, instead of storing them.
/// It changes no result.
inline constexpr llvm::StringLiteral kRecompute = "sluice.recompute";

} // namespace sluice::ir
