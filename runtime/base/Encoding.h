// Bytes encoded as text, as in a plan.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::runtime {

/// Decodes two hexadecimal digits per byte; empty if `text` is not hexadecimal.
std::optional<std::vector<std::byte>> decodeHex(std::string_view text);

std::string encodeHex(std::span<const std::byte> bytes);

} // namespace sluice::runtime
