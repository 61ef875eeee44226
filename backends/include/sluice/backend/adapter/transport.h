// transportTable<Transport>: a transport from a C++ class. The class needs
//
//   static constexpr const char *name;
//   explicit Transport(const sluice_transport_options &options);
//   sluice_transfer *send(int32_t rank, const void *from, size_t bytes);
//   sluice_transfer *receive(int32_t rank, void *to, size_t bytes);
//   bool test(sluice_transfer *transfer);
//   void abort();                            from any thread; its own errors are not reported
#pragma once

#include "sluice/backend/adapter/error.h"
#include "sluice/backend/transport.h"

namespace sluice::backend {

template <typename Transport> class TransportCalls {
public:
  static constexpr sluice_transport_library table() {
    sluice_transport_library table{};
    table.struct_size = sizeof table;
    table.major_version = SLUICE_TRANSPORT_MAJOR;
    table.minor_version = SLUICE_TRANSPORT_MINOR;
    table.name = Transport::name;
    table.open = open;
    table.close = Its::template close<sluice_transport>;
    table.last_error = Its::template lastError<sluice_transport>;
    table.send = send;
    table.receive = receive;
    table.test = test;
    table.abort = abort;
    return table;
  }

private:
  using Its = Opened<Transport>;

  static sluice_status open(const sluice_transport_options *options, sluice_transport **transport) noexcept {
    return Its::open(transport, *options);
  }
  static sluice_status send(sluice_transport *transport, int32_t rank, const void *from, size_t bytes,
                            sluice_transfer **transfer) noexcept {
    return Its::call(transport, [&](Transport &its) { *transfer = its.send(rank, from, bytes); });
  }
  static sluice_status receive(sluice_transport *transport, int32_t rank, void *to, size_t bytes,
                               sluice_transfer **transfer) noexcept {
    return Its::call(transport, [&](Transport &its) { *transfer = its.receive(rank, to, bytes); });
  }
  static sluice_status test(sluice_transport *transport, sluice_transfer *transfer, int *done) noexcept {
    *done = 0;
    return Its::call(transport, [&](Transport &its) { *done = its.test(transfer); });
  }
  /// Does not store last_error, which belongs to the thread that may be in another call.
  static void abort(sluice_transport *transport) noexcept {
    LastError unreported(Transport::name);
    if (Its::of(transport).object)
      guarded(unreported, [&] { Its::of(transport).object->abort(); });
  }
};

template <typename Transport>
inline constexpr sluice_transport_library transportTable = TransportCalls<Transport>::table();

} // namespace sluice::backend
