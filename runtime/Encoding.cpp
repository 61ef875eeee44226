#include "runtime/Encoding.h"

#include <cstdint>

namespace sluice::runtime {

static constexpr std::string_view hexDigits = "0123456789abcdef",
                                  base64Digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

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

std::optional<std::vector<std::byte>> decodeBase64(std::string_view text) {
  if (text.size() % 4 != 0)
    return std::nullopt;
  size_t padding = text.ends_with("==") ? 2 : text.ends_with("=") ? 1 : 0;
  std::vector<std::byte> bytes;
  uint32_t bits = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    size_t digit = i >= text.size() - padding ? 0 : base64Digits.find(text[i]);
    if (digit == std::string_view::npos)
      return std::nullopt;
    bits = bits << 6 | static_cast<uint32_t>(digit);
    for (int shift = 16; i % 4 == 3 && shift >= 0; shift -= 8)
      bytes.push_back(static_cast<std::byte>(bits >> shift & 0xff));
  }
  bytes.resize(bytes.size() - padding);
  return bytes;
}

} // namespace sluice::runtime
