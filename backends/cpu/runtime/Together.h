// The exchanges that one thread has submitted and waits for: one, or all between begin and end.
#pragma once

#include "backends/cpu/runtime/Rendezvous.h"
#include "backends/exchange/Across.h"

#include <vector>

namespace sluice::cpu {

/// An exchange of one rank.
struct Pending {
  std::shared_ptr<Ranks> ranks;
  exchange::Across *across; ///< instead of `ranks`, if the other ranks are in other processes
  int32_t rank;
  const void *queue;
  exchange::Part part;
  std::string what; ///< "all-reduce of dw1 of rank 0"
};

class Together {
public:
  bool isOpen() const { return depth_ > 0; }
  void begin() { ++depth_; }
  /// Runs all exchanges if this is the outermost end. Throws the first error after all have completed.
  void end(Hall &hall, const sluice_run_services &services);

  void add(Pending pending) { pending_.push_back(std::move(pending)); }

private:
  int depth_ = 0;
  std::vector<Pending> pending_;
};

/// Runs exchanges in the order of each queue, and returns when they have completed. Then throws the first error.
void exchangeAll(Hall &hall, std::vector<Pending> pending, const sluice_run_services &services);

} // namespace sluice::cpu
