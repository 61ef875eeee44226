// Formats quantities for the tool's output.
#pragma once

#include <cstdint>
#include <fmt/format.h>
#include <string>

namespace sluice::tool {

/// "9999 bytes", "10 kB", "10.0 MB"
inline std::string printBytes(int64_t bytes) {
  if (bytes < 10'000)
    return fmt::format("{} bytes", bytes);
  return bytes < 10'000'000 ? fmt::format("{:.0f} kB", double(bytes) / 1e3)
                            : fmt::format("{:.1f} MB", double(bytes) / 1e6);
}

} // namespace sluice::tool
