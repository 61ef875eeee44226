// A context: the host's memory, and launches on the threads of the instance.
#pragma once

#include "backends/cpu/runtime/HostInfo.h"
#include "backends/cpu/runtime/HostMemory.h"
#include "backends/cpu/runtime/Rendezvous.h"
#include "backends/cpu/runtime/Together.h"

#include <map>
#include <memory>

namespace sluice::cpu {

class Communicator;

/// A class for adapter/run.h.
class Context {
public:
  static constexpr const char *name = "cpu";
  static constexpr bool immediate = true, takesHostQueues = true;

  struct Group {
    std::shared_ptr<Hall> hall = std::make_shared<Hall>();
  };
  struct Queue {
    int32_t device;
  };
  using Communicator = cpu::Communicator;

  Context(const sluice_run_options &options, const Group *group);

  int32_t deviceCount() const { return 1; }
  void describe(int32_t device, sluice_device_info &info);
  void *allocate(int32_t device, size_t bytes);
  void release(int32_t device, void *address);
  Queue addQueue(int32_t device, sluice_queue_kind kind, const char *name) const;
  void copy(const Queue &queue, const sluice_copy &copy) const;
  void launch(const Queue &queue, const sluice_launch &launch) const;

  sluice_unique_id uniqueId();
  void beginExchanges() { together_.begin(); }
  void endExchanges() { together_.end(*hall_, *services_); }
  /// Runs an exchange, or defers it between begin and end.
  void exchange(Pending pending);

  Hall &hall() { return *hall_; }
  /// Throws if there is no such device.
  static void checkDevice(int32_t device);

private:
  const sluice_run_services *services_;
  std::shared_ptr<Hall> hall_;          // the group's, or a private one
  HostInfo host_;                       // as `describe` read it last; owns the name
  std::map<void *, HostMemory> blocks_; // allocations by address
  Together together_;
};

} // namespace sluice::cpu
