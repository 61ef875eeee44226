// The settings of the simulator, for example `--sim seed=7,link=12GB/s,latency=5us`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace sluice::sim {

struct Settings {
  uint64_t seed = 0;                    // of the order in which queues run
  int32_t devices = 4;                  // virtual accelerators
  int64_t memoryBytes = 16'000'000'000; // of each
  double linkBandwidth = 12e9;          // bytes per second, in each direction between two devices
  double linkLatency = 5e-6;            // seconds per copy over a link
  size_t pending = 256;                 // pieces of work that may be pending before one must run
  bool reportRaces = true;              // `races`: whether a race is an error
  bool unevenTable = false;             // `table`: kernel times are `unevenSeconds`, not `kernelSeconds`

  bool operator==(const Settings &) const = default;
};

/// Parses "name=value,name=value"; "" keeps every default. Throws a usage error with the expected form of the value.
Settings parseSettings(std::string_view text);

} // namespace sluice::sim
