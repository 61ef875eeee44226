// The private state of a context: the knowledge of its host, which issues the work, its host memory and its counters.
// Devices, queues and memory belong to the machine, which the contexts of a group share.
#pragma once

#include "backends/sim/runtime/Machine.h"
#include "sluice/backend/adapter.h"

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

namespace sluice::sim {

class Communicator;

/// A class for adapter/run.h.
class Context {
public:
  static constexpr const char *name = "sim";
  static constexpr bool takesHostQueues = true, lazy = true;

  struct Group {
    std::shared_ptr<Machine> machine; // null until its first context
  };
  using Queue = sim::Queue &; // the machine's
  struct Event {
    const Machine *machine;
    std::shared_ptr<Recording> recording; // null: never recorded
  };
  using Sequence = sim::Sequence;
  using Communicator = sim::Communicator;

  Context(const sluice_run_options &options, Group *group);
  ~Context();
  Context(const Context &) = delete;
  Context &operator=(const Context &) = delete;

  Machine &machine() { return *machine_; }
  Host &host() { return host_; }
  /// The lock of a call. The adapter (adapter/handles.h) holds it during each call of the ABI; the destructor takes
  /// it itself.
  Machine::Turn enter() { return {*machine_, services_}; }

  int32_t deviceCount() const { return machine_->deviceCount(); }
  void describe(int32_t device, sluice_device_info &info);
  void peerLink(int32_t from, int32_t to, sluice_peer_link &link);
  void *allocate(int32_t device, size_t bytes) { return machine_->memory(device).allocate(bytes); }
  void release(int32_t device, void *address) { machine_->release(device, address); }
  void clear(int32_t device, void *address) { machine_->clear(device, address); }
  void acquire() { machine_->acquire(host_); }
  void *allocateOnHost(size_t bytes);
  void releaseOnHost(void *address);

  Queue addQueue(int32_t device, sluice_queue_kind, const char *name) {
    return machine_->addQueue(device, name, host_);
  }
  void remove(Queue queue) { machine_->drop(queue, host_); }
  void copy(Queue queue, const sluice_copy &copy);
  void launch(Queue queue, const sluice_launch &launch);
  void discard(Queue queue, void *address, size_t bytes);
  void synchronize(Queue queue) { machine_->synchronize(*machine_->record(queue, host_), host_); }
  void signal(Queue queue, uint64_t *place, uint64_t number) { machine_->signal(queue, place, number, host_); }
  void waitForSignal(Queue queue, const uint64_t *place, uint64_t number) {
    machine_->waitForSignal(queue, place, number, host_);
  }
  std::vector<sluice_copy_count> copyCounts() const;

  Event addEvent() const { return {machine_.get(), nullptr}; }
  void record(Queue queue, Event &event) { event.recording = machine_->record(queue, host_); }
  void wait(Queue queue, const Event &event);
  void synchronize(const Event &event);
  void synchronizeUntil(const Event &event, const backend::Deadline &deadline);
  bool isDone(const Event &event) { return !event.recording || machine_->query(*event.recording, host_); }
  /// Start and end of the last work before it.
  std::pair<double, double> times(const Event &event) const;

  void beginCapture(Queue queue) { machine_->beginCapture(queue); }
  Sequence endCapture(Queue queue) { return machine_->endCapture(queue); }
  void abandonCapture(Queue queue) { queue.captured.reset(); }
  void replay(Queue queue, const Sequence &sequence) { machine_->replay(queue, sequence, host_); }

  sluice_unique_id uniqueId();
  /// Submits an exchange at once, or, between beginExchanges and endExchanges, together with all others at the end.
  /// endExchanges throws the first error.
  void putTogether(std::function<void()> exchange);
  void beginExchanges() { ++together_; }
  void endExchanges();

private:
  double launchSeconds(const DeviceRates &rates, const sluice_launch &launch) const;

  sluice_run_services services_;
  std::shared_ptr<Machine> machine_; // the group's, or a private one
  Host host_;
  std::map<void *, std::unique_ptr<std::byte, void (*)(void *)>> hostMemory_; // addresses returned by allocateOnHost
  // number and bytes of the copies of each (from, to)
  std::map<std::pair<int32_t, int32_t>, std::pair<int64_t, int64_t>> counts_;
  int together_ = 0;                             // nested begins without ends
  std::vector<std::function<void()>> exchanges_; // deferred until the outermost end
};

} // namespace sluice::sim
