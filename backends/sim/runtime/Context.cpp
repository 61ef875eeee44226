#include "backends/sim/runtime/Context.h"

#include "backends/sim/runtime/Error.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace sluice::sim {

static constexpr int kPoison = 0xff; // NaN in every floating-point type, -1 in every signed integer

//===- work -------------------------------------------------------------------------------------------------------===//

void Context::copy(Queue queue, const sluice_copy &copy) {
  std::string what = "copy" + (copy.label && *copy.label ? " of " + std::string(copy.label) : std::string());
  for (int32_t device : {copy.from_device, copy.to_device})
    if (device != SLUICE_HOST)
      machine_->memory(device); // checks the number
  if (queue.captured && (copy.from_device != queue.device || copy.to_device != queue.device))
    Machine::checkCapturesNot(queue, "copy from one memory to another");
  Buffer from{const_cast<void *>(copy.from), copy.bytes, SLUICE_READ}, to{copy.to, copy.bytes, SLUICE_WRITE};
  std::pair<int32_t, int32_t> ends{copy.from_device, copy.to_device};
  auto schedule = [this, ends, bytes = copy.bytes](double earliest) {
    auto [start, end] = machine_->links().schedule(ends.first, ends.second, bytes, earliest);
    return Interval{start, end};
  };
  auto work = [this, ends, from, to] {
    std::vector<Buffer> locked;
    if (ends.first != SLUICE_HOST)
      locked.push_back(from);
    if (ends.second != SLUICE_HOST)
      locked.push_back(to);
    Unlocked unlocked(std::move(locked));
    if (from.bytes > 0) // else the addresses may be null
      std::memmove(to.address, from.address, from.bytes);
    auto &[copies, bytes] = counts_[ends];
    ++copies;
    bytes += static_cast<int64_t>(from.bytes);
  };
  std::vector<Access> accesses;
  if (copy.bytes > 0)
    accesses = {{"its source", ends.first, from}, {"its destination", ends.second, to}};
  machine_->put(queue, {what, std::move(accesses), schedule, work}, host_);
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

static std::vector<Buffer> buffersOf(const sluice_launch &launch) {
  std::vector<Buffer> buffers;
  for (size_t i = 0; i < launch.num_buffers; ++i) {
    const sluice_buffer &buffer = *sluice_launch_buffer_at(&launch, i);
    buffers.push_back({launch.addresses[i], buffer.bytes, buffer.access});
  }
  return buffers;
}

static std::vector<sluice_launch_stage> stagesOf(const sluice_launch &launch) {
  std::vector<sluice_launch_stage> stages;
  for (size_t i = 0; i < launch.num_stages; ++i)
    stages.push_back(*sluice_launch_stage_at(&launch, i));
  return stages;
}

double Context::launchSeconds(const DeviceRates &rates, const sluice_launch &launch) const {
  const char *kind = launch.kind ? launch.kind : "";
  if (!machine_->settings().unevenTable)
    return kernelSeconds(rates, kind, launch.flops, launch.bytes);
  LaunchWork work{kind, launch.flops};
  for (const Buffer &buffer : buffersOf(launch)) {
    work.bufferBytes += static_cast<double>(buffer.bytes);
    work.writtenBytes += buffer.access == SLUICE_READ ? 0 : static_cast<double>(buffer.bytes);
  }
  return unevenSeconds(rates, work);
}

void Context::launch(Queue queue, const sluice_launch &launch) {
  std::string what = "kernel " + std::string(launch.name);
  if (launch.function || launch.module)
    throw Error(SLUICE_UNSUPPORTED, what + ": sim runs kernels that were compiled for the host, and has no function '" +
                                        (launch.function ? launch.function : "") + "'");
  bool onHost = queue.device == SLUICE_HOST;
  std::vector<Buffer> buffers = buffersOf(launch);
  std::vector<Access> accesses;
  for (const Buffer &buffer : buffers)
    accesses.push_back({"one of its buffers", queue.device, buffer});
  double seconds = launchSeconds(onHost ? kHostRates : kAcceleratorRates, launch);
  auto schedule = [seconds](double earliest) { return Interval{earliest, earliest + seconds}; };
  auto work = [this, onHost, buffers, stages = stagesOf(launch), rows = launch.call->rows] {
    std::vector<void *> addresses;
    for (const Buffer &buffer : buffers)
      addresses.push_back(buffer.address);
    Unlocked unlocked(onHost ? std::vector<Buffer>() : buffers);
    for (const sluice_launch_stage &stage : stages) {
      StageCall call{stage.function, addresses.data(), rows};
      const sluice_run_services &services = machine_->services();
      services.parallel_for(services.context, stage.tasks, runTasks, &call);
    }
  };
  machine_->put(queue, {what, std::move(accesses), schedule, work}, host_);
}

void Context::discard(Queue queue, void *address, size_t bytes) {
  Buffer buffer{address, bytes, SLUICE_WRITE};
  auto schedule = [](double earliest) { return Interval{earliest, earliest}; };
  bool onHost = queue.device == SLUICE_HOST;
  auto work = [onHost, buffer] {
    Unlocked unlocked(onHost ? std::vector<Buffer>() : std::vector{buffer});
    std::memset(buffer.address, kPoison, buffer.bytes);
  };
  machine_->put(queue, {"discarding", {{"what is discarded", queue.device, buffer}}, schedule, work}, host_);
}

//===- exchanges --------------------------------------------------------------------------------------------------===//

void Context::putTogether(std::function<void()> exchange) {
  together_ > 0 ? exchanges_.push_back(std::move(exchange)) : exchange();
}

void Context::endExchanges() {
  if (together_ == 0)
    throw Error(SLUICE_USAGE, "sim: exchanges end that did not begin");
  if (--together_ > 0)
    return;
  std::optional<Error> first;
  for (const std::function<void()> &exchange : std::exchange(exchanges_, {}))
    try {
      exchange();
    } catch (const Error &error) {
      if (!first)
        first = error;
    }
  if (first)
    throw *first;
}

//===- host memory ------------------------------------------------------------------------------------------------===//

void *Context::allocateOnHost(size_t bytes) {
  constexpr size_t kAlignment = 64;
  size_t rounded = (bytes / kAlignment + 1) * kAlignment;
  void *address = rounded > bytes ? std::aligned_alloc(kAlignment, rounded) : nullptr;
  if (!address)
    throw Error(SLUICE_EXHAUSTED, "sim: the host is out of memory: " + std::to_string(bytes) + " bytes were asked for");
  std::memset(address, 0, rounded);
  hostMemory_.try_emplace(address, static_cast<std::byte *>(address), std::free);
  return address;
}

void Context::releaseOnHost(void *address) {
  if (hostMemory_.erase(address) == 0)
    throw Error(SLUICE_USAGE, "sim: what is released is no host memory that it gave");
}

} // namespace sluice::sim
