// Quantities as written by users: "16GB", "12GB/s", "5us".
#pragma once

#include "llvm/ADT/StringRef.h"
#include <optional>

namespace sluice::passes {

/// Whether a number of bytes or operations, or of either per second, is plausible: at most 10^18.
bool isAmount(double number, double least = 1);
/// Whether a time in seconds is 0 or plausible: 10^-12 to 10^4.
bool isTime(double seconds);

/// None if the text is no quantity of that kind, or not above 0 (a time may be 0).
std::optional<double> parseBytes(llvm::StringRef text);
std::optional<double> parseBytesPerSecond(llvm::StringRef text);
std::optional<double> parseSeconds(llvm::StringRef text);

} // namespace sluice::passes
