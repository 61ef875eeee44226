// Bytes written as text, as a plan carries them.
#ifndef SLUICE_RUNTIME_ENCODING_H
#define SLUICE_RUNTIME_ENCODING_H

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

namespace sluice::runtime {

/// Two digits a byte; nothing where `text` is something else.
std::optional<std::vector<std::byte>> decodeHex(std::string_view text);

/// RFC 4648 with padding; nothing where `text` is something else.
std::optional<std::vector<std::byte>> decodeBase64(std::string_view text);

} // namespace sluice::runtime

#endif
