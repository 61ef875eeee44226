// A transport between threads of one process that can misbehave, for tests of what uses transports.
#pragma once

#include "sluice/backend/transport.h"

#include <string>

namespace sluice::test {

/// Ranks find each other by the secret.
const sluice_transport_library &memoryTransport();

/// From now on what a rank sends, in runs with this secret, is kept back, or is a byte longer than it should be.
enum class WireFault { none, silent, longer };
void setWireFault(const std::string &secret, int rank, WireFault fault);

} // namespace sluice::test
