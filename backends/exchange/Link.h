// A transport for exchanges: errors become exceptions, and waits for messages have a deadline.
#pragma once

#include "backends/exchange/Error.h"
#include "sluice/backend/transport.h"

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace sluice::exchange {

class Link {
public:
  using Clock = std::chrono::steady_clock;

  explicit Link(const sluice_transport_link &link) : link_(link) {}

  sluice_transfer *send(int32_t rank, const void *from, size_t bytes) const {
    sluice_transfer *transfer = nullptr;
    check(link_.library->send(link_.transport, rank, from, bytes, &transfer));
    return transfer;
  }
  sluice_transfer *receive(int32_t rank, void *to, size_t bytes) const {
    sluice_transfer *transfer = nullptr;
    check(link_.library->receive(link_.transport, rank, to, bytes, &transfer));
    return transfer;
  }
  bool test(sluice_transfer *transfer) const {
    int done = 0;
    check(link_.library->test(link_.transport, transfer, &done));
    return done != 0;
  }
  /// Thread-safe.
  void abort() const { link_.library->abort(link_.transport); }

  /// Whether a wait that began at `since` has passed the deadline. The negation also treats a NaN deadline as passed.
  bool isLate(Clock::time_point since) const {
    return !(std::chrono::duration<double>(Clock::now() - since).count() <= link_.deadline);
  }
  double deadline() const { return link_.deadline; }

private:
  void check(sluice_status status) const {
    if (status != SLUICE_OK)
      throw Error(status, link_.library->last_error(link_.transport));
  }

  sluice_transport_link link_;
};

} // namespace sluice::exchange
