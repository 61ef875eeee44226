// Whether the tables of a backend are what they must be.
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

/// What a table says of itself.
struct TableHead {
  const char *name; ///< "its run half"
  uint32_t size, major, minor;
};

/// Why a table cannot be what it says; empty if it can. `sizes` are its bytes in the minor versions 0, 1 and so on that
/// we know of the major version `major`: it has exactly those of its own, and of a later one at least those of the last.
std::string whyWrongSize(const TableHead &table, std::span<const size_t> sizes, uint32_t major = SLUICE_BACKEND_MAJOR);

/// Why a backend cannot be used: another major version, a `struct_size` that its version does not have, a name that is
/// none, or a member that every backend must have and this one lacks. Empty if nothing is wrong.
std::string whyUnsound(const sluice_backend *backend);
/// The same of a transport.
std::string whyUnsound(const sluice_transport_library *library);

/// The code of an error of the ABI.
ExitCode exitCodeOf(sluice_status status);

/// A run half of any minor version with all members that we know: those that it does not have are null.
inline sluice_backend_run wholeRunHalf(const sluice_backend_run &half) {
  sluice_backend_run whole{};
  std::memcpy(&whole, &half, std::min<std::size_t>(half.struct_size, sizeof whole));
  return whole;
}

} // namespace sluice::runtime
