#include "tools/compiler/Diagnostics.h"

#include "passes/Obstacle.h"
#include "llvm/ADT/Twine.h"

namespace sluice::compiler {

char ToolError::ID = 0;

llvm::Error makeError(ExitCode code, const llvm::Twine &message) {
  return llvm::make_error<ToolError>(code, message.str());
}

llvm::Error withCode(ExitCode code, llvm::Error error) {
  return error ? makeError(code, llvm::toString(std::move(error))) : llvm::Error::success();
}

static ExitCode codeOf(passes::Obstacle::Kind kind) {
  switch (kind) {
  case passes::Obstacle::None:
    return ExitCode::Fine;
  case passes::Obstacle::Usage:
    return ExitCode::Usage;
  case passes::Obstacle::Invalid:
    return ExitCode::Invalid;
  case passes::Obstacle::Unsupported:
    return ExitCode::Unsupported;
  case passes::Obstacle::Exhausted:
    return ExitCode::Exhausted;
  case passes::Obstacle::Internal:
    return ExitCode::Internal;
  }
  llvm_unreachable("no other kinds");
}

Failure takeFailure(llvm::Error error) {
  Failure failure{ExitCode::Internal, ""};
  llvm::handleAllErrors(
      std::move(error), [&](const ToolError &tool) { failure = {tool.exitCode(), tool.message()}; },
      [&](const passes::ObstacleError &obstacle) { failure = {codeOf(obstacle.kind()), obstacle.message()}; },
      [&](const llvm::ErrorInfoBase &other) { failure.text = other.message(); });
  return failure;
}

} // namespace sluice::compiler
