// Text for users: concatenation, lists of names, byte counts, and spelling suggestions.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::runtime {

template <std::integral Int> void appendText(std::string &text, Int value) { text += std::to_string(value); }
inline void appendText(std::string &text, std::string_view value) { text += value; }

/// `name=text` on a command line.
struct NamedText {
  std::string name, text;
};

/// Splits `text` after the longest of `names` that `separator` follows, since names may contain it; if there is none, at
/// the first separator.
NamedText splitNamed(std::string_view text, const std::vector<std::string> &names, std::string_view separator);

/// Concatenates the arguments; integers in decimal.
template <typename... Parts> std::string concat(const Parts &...parts) {
  std::string text;
  (appendText(text, parts), ...);
  return text;
}

/// The text with control characters, also those of Unicode, as `\xNN`, for text from files.
std::string printable(std::string_view text);

/// `'name'`, with control characters as `\xNN`, cut after 100 characters, because names come from files.
std::string quote(std::string_view name);

/// "a, b, c"; "none" for an empty list.
std::string listed(const std::vector<std::string> &names);

/// "1.5 MB" (powers of 1000).
std::string bytesText(uint64_t bytes);

/// `value` with `digits` digits after the point.
std::string fixedText(double value, int digits);

/// The member of `names` nearest to `name` by edit distance; empty if none is near. A member that begins with `name`,
/// of three characters or more, has distance 1.
std::string nearest(std::string_view name, const std::vector<std::string> &names);

/// All near members, at most `most`, the nearest first.
std::vector<std::string> nearestFew(std::string_view name, const std::vector<std::string> &names, size_t most);

/// "; did you mean 'x'?" or nothing.
std::string didYouMean(std::string_view name, const std::vector<std::string> &names);

} // namespace sluice::runtime
