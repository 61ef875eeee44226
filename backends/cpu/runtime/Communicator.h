// Collectives of one rank, with threads of this process or with other processes.
#pragma once

#include "backends/cpu/runtime/Context.h"
#include "sluice/backend/collectives.h"

namespace sluice::cpu {

/// A class for adapter/collectives.h.
class Communicator {
public:
  static constexpr const char *order = "ascending ranks";

  Communicator(Context &context, const sluice_communicator_options &options);

  void exchange(const Context::Queue &queue, const sluice_exchange &exchange);
  void check() const { across_ ? across_->check() : ranks_->check(); }
  /// Called from any thread, because the context's thread may be in a blocking call.
  void abort();
  void leave();
  exchange::Roster::Count count(int32_t kind) const;

private:
  Context &context_;
  int32_t rank_, device_;
  std::shared_ptr<Ranks> ranks_;
  std::unique_ptr<exchange::Across> across_; // instead of ranks_, if the other ranks are in other processes
};

} // namespace sluice::cpu
