// Recognizes files of other formats that users may pass as weights.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace sluice::runtime {

/// The number of leading bytes that suffice to recognize a format.
inline constexpr size_t foreignStartBytes = 4096;

/// A text for a file that is not a safetensors file: its format, and how to convert it. It continues a message after
/// the file's name: "is a zip archive ...". `start` holds the first `foreignStartBytes` bytes, or the whole file. Empty
/// if the format is unknown.
std::string foreignFormat(std::span<const std::byte> start, const std::string &name);

} // namespace sluice::runtime
