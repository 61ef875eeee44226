#include "passes/Obstacle.h"

namespace sluice::passes {

Obstacle obstacleOf(const ir::DiagnosticText &diagnostics) {
  if (diagnostics.errors().empty())
    return {Obstacle::Internal, "the compiler failed without a diagnostic"};
  return {diagnostics.hasUnsupported() ? Obstacle::Unsupported : Obstacle::Invalid,
          llvm::StringRef(diagnostics.errors()).rtrim().str()};
}

} // namespace sluice::passes
