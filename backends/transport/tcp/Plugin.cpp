// The transport `tcp`, behind the ABI's table: a connection between any two processes of a run.
#include "backends/transport/tcp/Mesh.h"
#include "backends/transport/tcp/Rendezvous.h"

#include <memory>
#include <new>
#include <optional>
#include <string>

using namespace sluice::transport;

struct sluice_transport {
  std::optional<Mesh> mesh;
  std::string error;
};

/// Runs `body`; an error that it throws becomes the transport's last one.
template <typename Body> static sluice_status guardedTransport(sluice_transport &transport, Body body) {
  try {
    body();
    return SLUICE_OK;
  } catch (const Error &error) {
    transport.error = error.what();
    return error.status();
  } catch (const std::bad_alloc &) {
    transport.error = "the host is out of memory";
    return SLUICE_EXHAUSTED;
  } catch (const std::exception &error) {
    transport.error = std::string("tcp: ") + error.what();
    return SLUICE_INTERNAL;
  }
}

static std::vector<Socket> socketsOf(const sluice_transport_options &options) {
  if (options.size < 1 || options.rank < 0 || options.rank >= options.size)
    fail(SLUICE_USAGE, "there is no rank ", options.rank, " of ", options.size);
  if (options.size == 1)
    return std::vector<Socket>(1);
  if (!options.address)
    fail(SLUICE_USAGE, "tcp needs the address where rank 0 is found, and nobody said it");
  return meetAll({options.rank, options.size, addressOf(options.address), options.secret, options.deadline});
}

static sluice_status openTransport(const sluice_transport_options *options, sluice_transport **transport) {
  *transport = new (std::nothrow) sluice_transport;
  if (!*transport)
    return SLUICE_EXHAUSTED;
  return guardedTransport(**transport, [&] { (*transport)->mesh.emplace(options->rank, socketsOf(*options)); });
}

static void closeTransport(sluice_transport *transport) { delete transport; }

static const char *lastError(sluice_transport *transport) { return transport->error.c_str(); }

static sluice_status sendTo(sluice_transport *transport, int32_t rank, const void *from, size_t bytes,
                            sluice_transfer **transfer) {
  return guardedTransport(*transport,
                          [&] { *transfer = transport->mesh->begin(rank, true, const_cast<void *>(from), bytes); });
}

static sluice_status receiveFrom(sluice_transport *transport, int32_t rank, void *to, size_t bytes,
                                 sluice_transfer **transfer) {
  return guardedTransport(*transport, [&] { *transfer = transport->mesh->begin(rank, false, to, bytes); });
}

static sluice_status test(sluice_transport *transport, sluice_transfer *transfer, int *done) {
  *done = 0;
  return guardedTransport(*transport, [&] { *done = transport->mesh->test(transfer); });
}

static void abortTransport(sluice_transport *transport) {
  if (transport->mesh)
    transport->mesh->abort();
}

const sluice_transport_library *sluice_transport_query() {
  static const sluice_transport_library library = [] {
    sluice_transport_library filled{};
    filled.struct_size = sizeof filled;
    filled.major_version = SLUICE_TRANSPORT_MAJOR;
    filled.minor_version = SLUICE_TRANSPORT_MINOR;
    filled.name = "tcp";
    filled.open = openTransport;
    filled.close = closeTransport;
    filled.last_error = lastError;
    filled.send = sendTo;
    filled.receive = receiveFrom;
    filled.test = test;
    filled.abort = abortTransport;
    return filled;
  }();
  return &library;
}
