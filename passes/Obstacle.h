// Why a module cannot be compiled as requested.
#pragma once

#include "ir/text/DiagnosticText.h"
#include <string>

namespace sluice::passes {

struct Obstacle {
  enum Kind {
    None,
    Invalid,     ///< a mistake of the user
    Unsupported, ///< an op or device that is not available
    Exhausted,   ///< more memory than a device may have
    Internal,    ///< a bug in Sluice
  } kind = None;
  std::string text;
};

/// The collected errors as one: Unsupported if one of them is, else Invalid.
Obstacle obstacleOf(const ir::DiagnosticText &diagnostics);

} // namespace sluice::passes
