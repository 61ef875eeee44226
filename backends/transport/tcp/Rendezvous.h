// Connects the ranks of a run. Rank 0 has a store at an address that all ranks are given. Each rank listens at an
// ephemeral port, at the address by which it reaches rank 0, and publishes that address in the store. It then connects
// to all lower ranks and accepts connections from higher ranks. Both ends of a connection send the secret first.
#pragma once

#include "backends/transport/tcp/Address.h"
#include "backends/transport/tcp/Socket.h"

#include <cstdint>
#include <string>
#include <vector>

namespace sluice::transport {

struct Run {
  int32_t rank, size;
  Address address; ///< of rank 0
  std::string secret;
  double deadline; ///< seconds
};

/// Connections to all ranks, indexed by rank; that of this rank is not open. Returns when every rank has all its
/// connections. Throws a deadline error with the missing ranks, a usage error if two processes have one rank or
/// different sizes, an error of invalid input if the address or the secret belongs to another run, or a lost-peer
/// error.
std::vector<Socket> meetAll(const Run &run);

} // namespace sluice::transport
