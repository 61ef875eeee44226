// The simulator's run half: devices, events and settings of its contexts, and the exported table.
#include "backends/sim/runtime/Communicator.h"

#include <algorithm>
#include <mutex>

namespace sluice::sim {

static constexpr size_t kAlignment = 64; // bytes, as the vectors of the host require, which runs the kernels

//===- devices ----------------------------------------------------------------------------------------------------===//

/// The group's machine, created by its first context; a private one without a group.
static std::shared_ptr<Machine> machineOf(const sluice_run_options &options, Context::Group *group) {
  Settings settings = parseSettings(options.settings ? options.settings : "");
  if (!group)
    return std::make_shared<Machine>(settings);
  static std::mutex opening;
  std::lock_guard<std::mutex> lock(opening);
  if (!group->machine)
    group->machine = std::make_shared<Machine>(settings);
  if (settings != group->machine->settings())
    throw Error(SLUICE_USAGE,
                std::string("sim: '") + options.settings + "' are other settings than those of the group");
  return group->machine;
}

Context::Context(const sluice_run_options &options, Group *group)
    : services_(*options.services), machine_(machineOf(options, group)) {}

Context::~Context() {
  Machine::Turn turn = enter();
  machine_->remove(host_);
}

void Context::describe(int32_t device, sluice_device_info &info) {
  info.name = "virtual accelerator";
  info.memory_bytes = machine_->memory(device).capacity();
  info.free_bytes = machine_->memory(device).freeBytes();
  info.cores = kAcceleratorRates.cores;
  info.clock_hz = kAcceleratorRates.clockHz;
  info.peak_flops = kAcceleratorRates.peakFlops;
  info.memory_bandwidth = kAcceleratorRates.memoryBandwidth;
  info.host_accessible = 0;
  info.link_bandwidth = machine_->settings().linkBandwidth;
  info.link_latency = machine_->settings().linkLatency;
  if (SLUICE_HAS_MEMBER(sluice_device_info, &info, alignment))
    info.alignment = kAlignment;
  if (SLUICE_HAS_MEMBER(sluice_device_info, &info, identity))
    info.identity = machine_->identity(device).c_str();
}

void Context::peerLink(int32_t from, int32_t to, sluice_peer_link &link) {
  for (int32_t device : {from, to})
    machine_->memory(device); // checks the number
  bool same = from == to;
  link.direct = 1;
  link.bandwidth = same ? kAcceleratorRates.memoryBandwidth / 2 : machine_->settings().linkBandwidth;
  link.latency = same ? kAcceleratorRates.launchSeconds : machine_->settings().linkLatency;
}

std::vector<sluice_copy_count> Context::copyCounts() const {
  std::vector<sluice_copy_count> counts;
  for (const auto &[ends, total] : counts_)
    counts.push_back({ends.first, ends.second, total.first, total.second});
  return counts;
}

//===- events -----------------------------------------------------------------------------------------------------===//

void Context::wait(Queue queue, const Event &event) {
  if (event.machine != machine_.get())
    throw Error(SLUICE_USAGE, "sim: queue " + queue.name + " waits for an event of a context that is not of its group");
  if (event.recording)
    machine_->wait(queue, event.recording, host_);
}

void Context::synchronize(const Event &event) {
  if (event.recording)
    machine_->synchronize(*event.recording, host_);
}

void Context::synchronizeUntil(const Event &event, const backend::Deadline &deadline) {
  if (event.recording && !machine_->synchronizeUntil(*event.recording, host_, deadline.time))
    throw Error(SLUICE_DEADLINE, "sim: work was not done within " + std::to_string(deadline.seconds) + " s" +
                                     Machine::reasonOf(*event.recording));
}

std::pair<double, double> Context::times(const Event &event) const {
  if (!event.recording || !event.recording->isKnown)
    throw Error(SLUICE_USAGE, "sim: the event is not done, or was never recorded");
  return {event.recording->last.start, event.recording->last.end};
}

} // namespace sluice::sim

extern "C" const sluice_backend *sluice_backend_query(void) {
  static constexpr sluice_backend backend = sluice::backend::backendTable(
      "sim", "virtual accelerators with hostile queues, a virtual clock and race detection", nullptr,
      &sluice::backend::runTable<sluice::sim::Context>);
  return &backend;
}
