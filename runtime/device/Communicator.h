// A replica's end of what replicas exchange through one slot of their devices: the collectives of the backend ABI
// (sluice/backend/collectives.h) with errors as exceptions.
#pragma once

#include "runtime/device/DeviceContext.h"
#include "runtime/plan/CollectiveCounts.h"
#include "sluice/backend/collectives.h"

#include <cstdint>
#include <optional>

namespace sluice::runtime {

class Communicator {
public:
  /// Which end of how many, and the device that it is of, in the ABI's numbers.
  struct Rank {
    int32_t number, size, device;
  };

  /// By the first rank, for all.
  static sluice_unique_id makeId(DeviceContext &context);

  /// All ranks call it, with one id; it may wait for the others. The context's backend must have collectives. `link` is to
  /// ranks of other processes, and null where there are none; it must outlive this.
  Communicator(DeviceContext &context, const sluice_unique_id &id, const Rank &rank, const sluice_transport_link *link);
  Communicator(const Communicator &) = delete;
  Communicator &operator=(const Communicator &) = delete;
  ~Communicator();

  /// Puts an exchange into a queue of the communicator's device.
  void exchange(DeviceQueue &queue, const sluice_exchange &exchange) {
    context_.check(table_.exchange(communicator_, queue.get(), &exchange), context_.backend());
  }
  /// Ends all ranks' exchanges with errors; any thread may call it.
  void abort() noexcept { table_.abort(communicator_); }
  /// What this rank has done of a sluice_exchange_kind; nothing if the backend does not count.
  std::optional<CollectiveCount> counted(int32_t kind) const;

private:
  DeviceContext &context_;
  const sluice_backend_collectives &table_;
  sluice_communicator *communicator_ = nullptr;
};

} // namespace sluice::runtime
