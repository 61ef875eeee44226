// The transport `openmpi` of the transport ABI: messages by Open MPI, among ranks that its launcher started.
#include "backends/transport/openmpi/Messages.h"
#include "sluice/backend/adapter.h"

using namespace sluice::transport;

namespace {

struct OpenMpi : Messages {
  static constexpr const char *name = "openmpi";

  explicit OpenMpi(const sluice_transport_options &options) : Messages(options.rank, options.size) {}
};

} // namespace

const sluice_transport_library *sluice_transport_query() { return &sluice::backend::transportTable<OpenMpi>; }
