// Names of inputs, outputs and states. Users choose them, and importers take them from files of other frameworks.
#pragma once

#include "llvm/ADT/StringRef.h"
#include <string>

namespace sluice::ir {

inline constexpr size_t kMostNameBytes = 1024;

/// The reason why a text cannot name an input, output or state: it is empty, not UTF-8, or has a control character.
/// Empty if it can. Names that the compiler derives from others may exceed kMostNameBytes.
std::string problemOfName(llvm::StringRef text);

/// The reason why a user cannot give this name; includes the limit of kMostNameBytes.
std::string problemOfGivenName(llvm::StringRef text);

/// A text that may be no name, for messages: quoted, in printable ASCII, cut after 100 bytes.
std::string quoteName(llvm::StringRef text);

} // namespace sluice::ir
