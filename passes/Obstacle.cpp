#include "passes/Obstacle.h"

namespace sluice::passes {

Obstacle obstacleOf(const ir::DiagnosticText &diagnostics) {
  if (diagnostics.errors().empty())
    return {Obstacle::Internal, "the compiler failed without a diagnostic"};
  return {diagnostics.hasExhausted()     ? Obstacle::Exhausted
          : diagnostics.hasUnsupported() ? Obstacle::Unsupported
                                         : Obstacle::Invalid,
          llvm::StringRef(diagnostics.errors()).rtrim().str()};
}

char ObstacleError::ID = 0;

llvm::Error refuse(Obstacle::Kind kind, const llvm::Twine &text) {
  return llvm::make_error<ObstacleError>(Obstacle{kind, text.str()});
}

llvm::Error withKind(Obstacle::Kind kind, llvm::Error error) {
  return error ? refuse(kind, llvm::toString(std::move(error))) : llvm::Error::success();
}

llvm::Error errorOf(const ir::DiagnosticText &diagnostics) {
  return llvm::make_error<ObstacleError>(obstacleOf(diagnostics));
}

} // namespace sluice::passes
