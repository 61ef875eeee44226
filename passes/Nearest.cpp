#include "passes/Nearest.h"

#include "llvm/ADT/Twine.h"

namespace sluice::passes {

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

} // namespace sluice::passes
