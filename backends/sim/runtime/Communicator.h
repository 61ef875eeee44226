// Collectives of one rank in the simulator.
#pragma once

#include "backends/sim/runtime/Context.h"
#include "backends/sim/runtime/Ranks.h"

namespace sluice::sim {

/// A class for adapter/collectives.h.
class Communicator {
public:
  static constexpr const char *order = "ascending ranks";

  Communicator(Context &context, const sluice_communicator_options &options);

  void exchange(Queue &queue, const sluice_exchange &exchange);
  void check() const { ranks_->check(); }
  void abort();
  void leave();
  exchange::Roster::Count count(int32_t kind) const { return ranks_->count(rank_, kind); }

private:
  void put(Queue &queue, const exchange::Part &part);

  Context &context_;
  int32_t rank_, device_;
  std::shared_ptr<Ranks> ranks_;
};

} // namespace sluice::sim
