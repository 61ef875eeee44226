// A transport between threads of one process with fault injection, for tests of transport users.
#pragma once

#include "sluice/backend/transport.h"

#include <chrono>
#include <string>

namespace sluice::test {

/// Ranks with the same secret connect.
const sluice_transport_library &memoryTransport();

/// Injects a fault into a rank's sends or receives in runs with this secret. Sends are suppressed, or are a byte too
/// long; receives complete at the earliest `kLateness` after their request.
enum class WireFault { none, silent, longer, late };
inline constexpr std::chrono::milliseconds kLateness{100};
void setWireFault(const std::string &secret, int rank, WireFault fault);

} // namespace sluice::test
