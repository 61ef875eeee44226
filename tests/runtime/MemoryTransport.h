// A transport between threads of one process that can misbehave, for tests of what uses transports.
#pragma once

#include "sluice/backend/transport.h"

#include <chrono>
#include <string>

namespace sluice::test {

/// Ranks find each other by the secret.
const sluice_transport_library &memoryTransport();

/// From now on what a rank sends, in runs with this secret, is kept back, or is a byte longer than it should be; or the rank has
/// what it receives no sooner than `kLateness` behind the time when it asks for it.
enum class WireFault { none, silent, longer, late };
inline constexpr std::chrono::milliseconds kLateness{100};
void setWireFault(const std::string &secret, int rank, WireFault fault);

} // namespace sluice::test
