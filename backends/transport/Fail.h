// Errors of transports, and helpers for their messages.
#pragma once

#include "backends/exchange/Error.h"

#include <concepts>
#include <string>
#include <string_view>

namespace sluice::transport {

using exchange::Error;

template <std::integral Int> void appendText(std::string &text, Int value) { text += std::to_string(value); }
inline void appendText(std::string &text, std::string_view value) { text += value; }

/// Throws an error whose message is the concatenation of the parts; integers in decimal.
template <typename... Parts> [[noreturn]] void fail(sluice_status status, const Parts &...parts) {
  std::string text;
  (appendText(text, parts), ...);
  throw Error(status, text);
}

} // namespace sluice::transport
