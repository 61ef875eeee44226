// Collectives of one rank, with devices of this and other processes, by NCCL.
#pragma once

#include "backends/cuda/runtime/RunHalf.h"

namespace sluice::cuda {

/// A class for adapter/collectives.h.
class Communicator {
public:
  static constexpr const char *order =
      "NCCL's own, by its choice of algorithm for the counts and the machine; the same program on the same "
      "machine repeats its bits";
  static constexpr const char *noTreeSums =
      "NCCL does not add in a fixed order; use one replica, or leave out --deterministic";

  Communicator(RunHalf &context, const sluice_communicator_options &options);

  void exchange(Queue &queue, const sluice_exchange &exchange);
  void check() { rank_->isReady(); }
  void abort();
  void leave();
  /// The exchanges submitted to NCCL, which reports no result per exchange.
  exchange::Roster::Count count(int32_t kind) const { return rank_->count(kind); }

private:
  void connect(const sluice_unique_id &id);

  RunHalf &context_;
  std::shared_ptr<Rank> rank_;
};

} // namespace sluice::cuda
