// The transport `tcp`, behind the ABI's table: a connection between any two processes of a run.
#include "backends/transport/Guard.h"
#include "backends/transport/tcp/Mesh.h"
#include "backends/transport/tcp/Rendezvous.h"

using namespace sluice::transport;

static std::vector<Socket> socketsOf(const sluice_transport_options &options) {
  if (options.size < 1 || options.rank < 0 || options.rank >= options.size)
    fail(SLUICE_USAGE, "there is no rank ", options.rank, " of ", options.size);
  if (options.size == 1)
    return std::vector<Socket>(1);
  if (!options.address)
    fail(SLUICE_USAGE, "tcp needs the address where rank 0 is found, and nobody said it");
  return meetAll({options.rank, options.size, addressOf(options.address), options.secret, options.deadline});
}

struct sluice_transport {
  std::optional<Mesh> open;
  std::string error;

  void openWith(const sluice_transport_options &options) {
    open.emplace(options.rank, socketsOf(options), options.deadline);
  }
};

const sluice_transport_library *sluice_transport_query() {
  static const sluice_transport_library library = libraryOf<sluice_transport>("tcp");
  return &library;
}
