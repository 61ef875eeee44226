// Amounts as users write them: "16GB", "12GB/s", "5us".
#pragma once

#include "llvm/ADT/StringRef.h"
#include <optional>

namespace sluice::compiler {

/// Nothing if the text is no amount of that kind, or not above 0 (a time may be 0).
std::optional<double> parseBytes(llvm::StringRef text);
std::optional<double> parseBytesPerSecond(llvm::StringRef text);
std::optional<double> parseSeconds(llvm::StringRef text);

} // namespace sluice::compiler
