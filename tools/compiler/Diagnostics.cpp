#include "tools/compiler/Diagnostics.h"

#include "llvm/ADT/Twine.h"

namespace sluice::compiler {

char ToolError::ID = 0;

llvm::Error makeError(ExitCode code, const llvm::Twine &message) {
  return llvm::make_error<ToolError>(code, message.str());
}

llvm::Error withCode(ExitCode code, llvm::Error error) {
  return error ? makeError(code, llvm::toString(std::move(error))) : llvm::Error::success();
}

Failure takeFailure(llvm::Error error) {
  Failure failure{ExitCode::Internal, ""};
  llvm::handleAllErrors(
      std::move(error), [&](const ToolError &tool) { failure = {tool.exitCode(), tool.message()}; },
      [&](const llvm::ErrorInfoBase &other) { failure.text = other.message(); });
  return failure;
}

llvm::StringRef nearest(llvm::StringRef wrong, llvm::ArrayRef<llvm::StringRef> known) {
  unsigned best = static_cast<unsigned>(wrong.size()) / 3 + 2; // a larger distance is another word, not a typo
  llvm::StringRef found;
  for (llvm::StringRef word : known) {
    unsigned distance = wrong.edit_distance(word, /*AllowReplacements=*/true, best);
    if (distance < best) {
      best = distance;
      found = word;
    }
  }
  return found;
}

std::string didYouMean(llvm::StringRef wrong, llvm::ArrayRef<llvm::StringRef> known) {
  llvm::StringRef word = nearest(wrong, known);
  return word.empty() ? "" : ("; did you mean '" + word + "'?").str();
}

} // namespace sluice::compiler
