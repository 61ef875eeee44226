// The run half of the CPU backend: the host's memory, and launches on the threads of the instance. Every executable
// runs the host's part of a plan with it.
//
// Its queues execute work before the call returns, in the calling thread. An alternative is a worker thread of the
// host, with events and without `immediate`; nothing else would change.
//
// The threads that wait for an exchange execute it: see Rendezvous.h, and Across.h for ranks in other processes.
#include "backends/cpu/runtime/Communicator.h"
#include "sluice/backend/adapter.h"
#include "sluice/backend/host.h"

#include <cstring>
#include <string>
#include <utility>

namespace sluice::cpu {

using exchange::Error;

//===- the device and its memory ----------------------------------------------------------------------------------===//

Context::Context(const sluice_run_options &options, const Group *group)
    : services_(options.services), hall_(group ? group->hall : std::make_shared<Hall>()) {
  if (options.settings && *options.settings)
    throw Error(SLUICE_USAGE, std::string("cpu has no settings; it was given '") + options.settings + "'");
}

void Context::checkDevice(int32_t device) {
  if (device != 0)
    throw Error(SLUICE_UNSUPPORTED, "there is no device cpu:" + std::to_string(device) + "; there is one");
}

void Context::describe(int32_t device, sluice_device_info &info) {
  checkDevice(device);
  host_ = readHostInfo();
  info.name = host_.name.c_str();
  info.memory_bytes = host_.memoryBytes;
  info.free_bytes = host_.freeBytes;
  info.cores = host_.cores;
  info.clock_hz = host_.clockHz;
  info.peak_flops = host_.peakFlops;
  info.host_accessible = 1;
}

void *Context::allocate(int32_t device, size_t bytes) {
  checkDevice(device);
  int64_t free = readFreeBytes();
  bool fits = free <= 0 || bytes <= static_cast<size_t>(free);
  if (fits)
    if (HostMemory block(bytes); void *address = block.address()) {
      blocks_.try_emplace(address, std::move(block));
      return address;
    }
  throw Error(SLUICE_EXHAUSTED, "cpu:0 is out of memory: " + std::to_string(bytes) + " bytes were asked for, " +
                                    std::to_string(free) + " are free");
}

void Context::release(int32_t, void *address) {
  if (blocks_.erase(address) == 0)
    throw Error(SLUICE_USAGE, "what is released is no allocation of cpu:0");
}

//===- work -------------------------------------------------------------------------------------------------------===//

Context::Queue Context::addQueue(int32_t device, sluice_queue_kind, const char *) const {
  if (device != SLUICE_HOST)
    checkDevice(device);
  return {device};
}

void Context::copy(const Queue &, const sluice_copy &copy) const {
  if (copy.bytes > 0) // else the addresses may be null
    std::memmove(copy.to, copy.from, copy.bytes);
}

namespace {

/// The arguments of a stage's tasks, for parallel_for.
struct StageCall {
  sluice_host_stage function;
  void *const *buffers;
  int64_t rows;
};

} // namespace

static void runTasks(void *argument, int64_t begin, int64_t end) {
  const StageCall &call = *static_cast<StageCall *>(argument);
  call.function(call.buffers, call.rows, begin, end);
}

/// A separate function, to keep `launch` small.
[[noreturn]] static void refuseFunction(const sluice_launch &launch) {
  throw Error(SLUICE_UNSUPPORTED, std::string("kernel ") + launch.name + ": cpu runs host code, and has no function '" +
                                      (launch.function ? launch.function : "") + "'");
}

void Context::launch(const Queue &, const sluice_launch &launch) const {
  if (launch.function || launch.module)
    refuseFunction(launch);
  for (size_t i = 0; i < launch.num_stages; ++i) {
    const sluice_launch_stage *stage = sluice_launch_stage_at(&launch, i);
    StageCall call{stage->function, launch.addresses, launch.call->rows};
    services_->parallel_for(services_->context, stage->tasks, runTasks, &call);
  }
}

void Context::exchange(Pending pending) {
  if (together_.isOpen())
    return together_.add(std::move(pending));
  std::vector<Pending> alone;
  alone.push_back(std::move(pending));
  exchangeAll(*hall_, std::move(alone), *services_);
}

} // namespace sluice::cpu

extern "C" const sluice_backend *sluice_host_backend(void) {
  static constexpr sluice_backend backend =
      sluice::backend::backendTable("cpu", "the host", nullptr, &sluice::backend::runTable<sluice::cpu::Context>);
  return &backend;
}
