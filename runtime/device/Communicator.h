// A replica's endpoint for collectives over one logical device: between its device and those of the other replicas.
// Wraps the collectives of the backend ABI (sluice/backend/collectives.h) and converts errors to exceptions.
#pragma once

#include "runtime/device/DeviceContext.h"
#include "runtime/plan/CollectiveCounts.h"
#include "sluice/backend/collectives.h"

#include <cstdint>
#include <optional>

namespace sluice::runtime {

class Communicator {
public:
  /// Rank, number of ranks, and the device, in the ABI's numbering.
  struct Rank {
    int32_t number, size, device;
  };

  /// The id that joins the ranks' communicators. The first rank makes it for all ranks.
  static sluice_unique_id makeId(DeviceContext &context);

  /// All ranks call this with the same id; the call may wait for the other ranks. The context's backend must support
  /// collectives. `link` connects to ranks of other processes and is null if there are none; it must outlive this.
  Communicator(DeviceContext &context, const sluice_unique_id &id, const Rank &rank, const sluice_transport_link *link);
  Communicator(const Communicator &) = delete;
  Communicator &operator=(const Communicator &) = delete;
  ~Communicator();

  /// Enqueues an exchange in a queue of the communicator's device.
  void exchange(DeviceQueue &queue, const sluice_exchange &exchange) {
    context_.check(table_.exchange(communicator_, queue.get(), &exchange), context_.backend());
  }
  /// Aborts the exchanges of all ranks: they fail with errors. Thread-safe.
  void abort() noexcept { table_.abort(communicator_); }
  /// This rank's count of exchanges of a sluice_exchange_kind; nothing if the backend does not count.
  std::optional<CollectiveCount> counted(int32_t kind) const;

private:
  DeviceContext &context_;
  const sluice_backend_collectives &table_;
  sluice_communicator *communicator_ = nullptr;
};

} // namespace sluice::runtime
