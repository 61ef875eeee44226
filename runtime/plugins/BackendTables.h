// Validates the tables of a backend.
#pragma once

#include "runtime/base/Status.h"
#include "sluice/backend/run.h"
#include "sluice/backend/transport.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

namespace sluice::runtime {

/// The size and version in a table's first members.
struct TableHead {
  const char *name; ///< "its run half"
  uint32_t size, major, minor;
};

/// The reason why a table's size is invalid; empty if it is valid. `sizes` are the sizes in the known minor versions 0,
/// 1 and so on of the major version `major`. A table of a known minor version has exactly that size; a later minor
/// version has at least the last size.
std::string whyWrongSize(const TableHead &table, std::span<const size_t> sizes, uint32_t major = SLUICE_BACKEND_MAJOR);

/// The reason why a backend is unusable: another major version, an invalid `struct_size`, an invalid name, or a missing
/// member. Empty if it is valid.
std::string whyUnsound(const sluice_backend *backend);
/// The same for a transport.
std::string whyUnsound(const sluice_transport_library *library);

/// The exit code for an ABI error.
ExitCode exitCodeOf(sluice_status status);

/// A run half of any minor version, extended to all known members; missing members are null.
inline sluice_backend_run wholeRunHalf(const sluice_backend_run &half) {
  sluice_backend_run whole{};
  std::memcpy(&whole, &half, std::min<std::size_t>(half.struct_size, sizeof whole));
  return whole;
}

} // namespace sluice::runtime
