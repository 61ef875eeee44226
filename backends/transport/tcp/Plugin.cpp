// The transport `tcp` of the transport ABI: a connection between any two processes of a run.
#include "backends/transport/tcp/Mesh.h"
#include "backends/transport/tcp/Rendezvous.h"
#include "sluice/backend/adapter.h"

using namespace sluice::transport;

static std::vector<Socket> socketsOf(const sluice_transport_options &options) {
  if (options.size < 1 || options.rank < 0 || options.rank >= options.size)
    fail(SLUICE_USAGE, "there is no rank ", options.rank, " of ", options.size);
  if (options.size == 1)
    return std::vector<Socket>(1);
  if (!options.address)
    fail(SLUICE_USAGE, "the transport tcp needs the address of rank 0: give --address HOST:PORT");
  return meetAll({options.rank, options.size, addressOf(options.address), options.secret, options.deadline});
}

namespace {

struct Tcp : Mesh {
  static constexpr const char *name = "tcp";

  explicit Tcp(const sluice_transport_options &options) : Mesh(options.rank, socketsOf(options), options.deadline) {}
};

} // namespace

const sluice_transport_library *sluice_transport_query() { return &sluice::backend::transportTable<Tcp>; }
