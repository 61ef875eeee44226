// How the ranks of a run find each other. Rank 0 has a store at the address that all know. Each rank listens at a port of
// its own, at the address by which it reaches rank 0, and leaves that in the store; then it connects to all ranks below it,
// and those above connect to it. Both ends of a connection show the secret before anything else.
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

/// Connections to all ranks, at their places; that of this rank is not open. Returns when every rank has all of its own.
/// Throws errors of a passed deadline with the ranks that have not come, of usage where ranks disagree about who they are,
/// of input where the address or the secret is another run's, and of a lost peer.
std::vector<Socket> meetAll(const Run &run);

} // namespace sluice::transport
