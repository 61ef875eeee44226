// The ABI's table of a transport, of a class that throws its errors.
#pragma once

#include "backends/transport/Fail.h"
#include "sluice/backend/transport.h"

#include <new>
#include <optional>
#include <string>

namespace sluice::transport {

/// Runs `body`; an error that it throws becomes the transport's last one.
template <typename Transport, typename Body> sluice_status guarded(Transport &transport, Body body) {
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
    transport.error = error.what();
    return SLUICE_INTERNAL;
  }
}

/// `Transport` is sluice_transport: the text `error`, and `open`, an optional end of all messages that `openWith` fills.
template <typename Transport> sluice_transport_library libraryOf(const char *name) {
  sluice_transport_library filled{};
  filled.struct_size = sizeof filled;
  filled.major_version = SLUICE_TRANSPORT_MAJOR;
  filled.minor_version = SLUICE_TRANSPORT_MINOR;
  filled.name = name;
  filled.open = [](const sluice_transport_options *options, Transport **transport) {
    *transport = new (std::nothrow) Transport;
    return *transport ? guarded(**transport, [&] { (*transport)->openWith(*options); }) : SLUICE_EXHAUSTED;
  };
  filled.close = [](Transport *transport) { delete transport; };
  filled.last_error = [](Transport *transport) { return transport->error.c_str(); };
  filled.send = [](Transport *transport, int32_t rank, const void *from, size_t bytes, sluice_transfer **transfer) {
    return guarded(*transport,
                   [&] { *transfer = transport->open->begin(rank, true, const_cast<void *>(from), bytes); });
  };
  filled.receive = [](Transport *transport, int32_t rank, void *to, size_t bytes, sluice_transfer **transfer) {
    return guarded(*transport, [&] { *transfer = transport->open->begin(rank, false, to, bytes); });
  };
  filled.test = [](Transport *transport, sluice_transfer *transfer, int *done) {
    *done = 0;
    return guarded(*transport, [&] { *done = transport->open->test(transfer); });
  };
  filled.abort = [](Transport *transport) {
    if (transport->open)
      transport->open->abort();
  };
  return filled;
}

} // namespace sluice::transport
