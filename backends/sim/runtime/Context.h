// What a context has of its own: its host, which issues the work, and what that work is made of.
#pragma once

#include "backends/sim/runtime/Machine.h"

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

namespace sluice::sim {

class Context {
public:
  Context(const sluice_run_services &services, std::shared_ptr<Machine> machine);
  ~Context();
  Context(const Context &) = delete;
  Context &operator=(const Context &) = delete;

  Machine &machine() { return *machine_; }
  Host &host() { return host_; }
  /// What every call but these two holds.
  Machine::Turn turn() { return {*machine_, services_}; }

  void *allocateOnHost(size_t bytes);
  void releaseOnHost(void *address);

  void copy(Queue &queue, const sluice_copy &copy);
  void launch(Queue &queue, const sluice_launch &launch);
  void discard(Queue &queue, void *address, size_t bytes);

  /// Puts an exchange in now, or, between these, with all others at the end. The first error is that of the end.
  void putTogether(std::function<void()> exchange);
  void beginTogether() { ++together_; }
  void endTogether();

  /// Copies and bytes of each (from, to).
  using Counts = std::map<std::pair<int32_t, int32_t>, std::pair<int64_t, int64_t>>;
  const Counts &counts() const { return counts_; }

private:
  double launchSeconds(const DeviceRates &rates, const sluice_launch &launch) const;

  sluice_run_services services_;
  std::shared_ptr<Machine> machine_;
  Host host_;
  std::map<void *, std::unique_ptr<std::byte, void (*)(void *)>> hostMemory_; // what allocateOnHost gave
  Counts counts_;
  int together_ = 0; // begins without their ends
  std::vector<std::function<void()>> exchanges_;
};

} // namespace sluice::sim
