#include "runtime/base/Encoding.h"

namespace sluice::runtime {

static constexpr std::string_view hexDigits = "0123456789abcdef";

std::optional<std::vector<std::byte>> decodeHex(std::string_view text) {
  std::vector<std::byte> bytes;
  if (text.size() % 2 != 0)
    return std::nullopt;
  for (size_t i = 0; i < text.size(); i += 2) {
    size_t high = hexDigits.find(text[i]), low = hexDigits.find(text[i + 1]);
    if (high == std::string_view::npos || low == std::string_view::npos)
      return std::nullopt;
    bytes.push_back(static_cast<std::byte>(high << 4 | low));
  }
  return bytes;
}

std::string encodeHex(std::span<const std::byte> bytes) {
  std::string text;
  for (std::byte value : bytes)
    for (unsigned digit : {std::to_integer<unsigned>(value) >> 4, std::to_integer<unsigned>(value) & 15})
      text += hexDigits[digit];
  return text;
}

} // namespace sluice::runtime
