// Files that people take for weights and that are none: each is named for what it is.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace sluice::runtime {

/// So many bytes of a file are enough to name it.
inline constexpr size_t foreignStartBytes = 4096;

/// What a file is that is no safetensors file, and how to convert it, as a clause behind the file's name: "is a zip
/// archive ...". `start` is its beginning: `foreignStartBytes` or all. Empty if it is no known format.
std::string foreignFormat(std::span<const std::byte> start, const std::string &name);

} // namespace sluice::runtime
