// Bytes written as text, as a plan carries them.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::runtime {

/// Two digits a byte; nothing where `text` is something else.
std::optional<std::vector<std::byte>> decodeHex(std::string_view text);

std::string encodeHex(std::span<const std::byte> bytes);

} // namespace sluice::runtime
