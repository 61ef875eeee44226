// Suggestions for misspelled words.
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <string>

namespace sluice::passes {

/// The known word nearest to a misspelled one, by edit distance; empty if none is near.
llvm::StringRef nearest(llvm::StringRef wrong, llvm::ArrayRef<llvm::StringRef> known);

/// "; did you mean 'x'?", or nothing.
std::string didYouMean(llvm::StringRef wrong, llvm::ArrayRef<llvm::StringRef> known);

} // namespace sluice::passes
