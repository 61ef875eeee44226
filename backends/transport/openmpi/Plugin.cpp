// The transport `openmpi`, behind the ABI's table: messages by Open MPI, among ranks that its launcher started.
#include "backends/transport/Guard.h"
#include "backends/transport/openmpi/Library.h"
#include "backends/transport/openmpi/Messages.h"

using namespace sluice::transport;

struct sluice_transport {
  std::optional<Messages> open;
  std::string error;

  void openWith(const sluice_transport_options &options) {
    showOpenMpi();
    open.emplace(options.rank, options.size);
  }
};

const sluice_transport_library *sluice_transport_query() {
  static const sluice_transport_library library = libraryOf<sluice_transport>("openmpi");
  return &library;
}
