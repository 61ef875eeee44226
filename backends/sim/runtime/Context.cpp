#include "backends/sim/runtime/Context.h"

#include "backends/sim/runtime/Error.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace sluice::sim {

static constexpr int kPoison = 0xff; // NaN in every floating-point type, -1 in every signed integer

Context::Context(const sluice_run_services &services, const Settings &settings)
    : services_(services), settings_(settings), scheduler_(settings.seed, settings.pending), links_(settings) {
  for (int32_t device = 0; device < settings.devices; ++device)
    devices_.emplace_back(device, settings.memoryBytes);
}

DeviceMemory &Context::memory(int32_t device) {
  if (device < 0 || device >= deviceCount())
    throw Error(SLUICE_UNSUPPORTED, "there is no device sim:" + std::to_string(device) + "; this context has " +
                                        std::to_string(deviceCount()));
  return devices_[static_cast<size_t>(device)];
}

//===- addresses --------------------------------------------------------------------------------------------------===//

std::string Context::bytesText(int32_t device, uintptr_t begin, uintptr_t end) const {
  if (device == SLUICE_HOST)
    return std::to_string(end - begin) + " bytes of host memory";
  DeviceMemory::Address address = devices_[static_cast<size_t>(device)].locate(reinterpret_cast<void *>(begin));
  return "bytes " + std::to_string(address.offset) + " to " + std::to_string(address.offset + (end - begin)) +
         " of allocation " + std::to_string(address.block) + " of " + deviceText(device);
}

void Context::checkAccess(const std::string &what, const Access &access) const {
  const Buffer &buffer = access.buffer;
  if (access.device != SLUICE_HOST) {
    if (!devices_[static_cast<size_t>(access.device)].contains(buffer.address, buffer.bytes))
      throw Error(SLUICE_INVALID, what + ": " + access.what + " (" + std::to_string(buffer.bytes) +
                                      " bytes) does not lie in one allocation of " + deviceText(access.device));
    return;
  }
  for (size_t device = 0; device < devices_.size(); ++device)
    if (devices_[device].contains(buffer.address, 1))
      throw Error(SLUICE_INVALID, what + ": " + access.what + " lies in memory of " +
                                      deviceText(static_cast<int32_t>(device)) + ", not of the host");
}

void Context::checkAccesses(const Piece &piece) const {
  for (const Access &access : piece.accesses)
    checkAccess(piece.what, access);
}

void Context::release(int32_t device, void *address) {
  uintptr_t begin = reinterpret_cast<uintptr_t>(address);
  DeviceMemory &memory = this->memory(device);
  size_t bytes = memory.sizeOf(address);
  if (std::optional<Conflict> conflict = history_.findUnfinished(begin, begin + bytes, hostOrder_))
    throw Error(SLUICE_INTERNAL, std::to_string(bytes) + " bytes of " + deviceText(device) +
                                     " cannot be released: the host has not waited for " + *conflict->earlier.text);
  memory.release(address);
  history_.forget(begin, begin + bytes);
}

//===- order and time ---------------------------------------------------------------------------------------------===//

Queue &Context::addQueue(int32_t device, const char *name) {
  if (device != SLUICE_HOST)
    memory(device); // checks the number
  Queue &queue = queues_.emplace_back();
  queue.number = scheduler_.addQueue();
  queue.device = device;
  queue.name = name;
  return queue;
}

void Context::drop(Queue &queue) {
  scheduler_.drop(queue.number);
  hostOrder_.join(queue.order);
}

/// What a queue that captures refuses.
static void checkCapturesNot(const Queue &queue, const char *what) {
  if (queue.captured)
    throw Error(SLUICE_USAGE, std::string("sim: queue ") + queue.name + " captures, and cannot " + what);
}

Recording Context::record(Queue &queue) {
  checkCapturesNot(queue, "record events or be waited for");
  queue.order.join(hostOrder_);
  return {scheduler_.end(queue.number), earliest(queue), queue.last, queue.order};
}

void Context::wait(Queue &queue, const Recording &recording) {
  checkCapturesNot(queue, "wait for events");
  scheduler_.wait(queue.number, recording.position);
  queue.order.join(recording.order);
  queue.free = std::max(queue.free, recording.reached);
}

void Context::note(const Recording &recording) {
  hostOrder_.join(recording.order);
  hostTime_ = std::max(hostTime_, recording.reached);
}

void Context::synchronize(const Recording &recording) {
  scheduler_.runUntil(recording.position);
  note(recording);
}

bool Context::query(const Recording &recording) {
  bool isDone = scheduler_.isDone(recording.position);
  isDone ? note(recording) : scheduler_.runAny();
  return isDone;
}

bool Context::synchronizeUntil(const Recording &recording, std::chrono::steady_clock::time_point deadline) {
  while (!query(recording))
    if (std::chrono::steady_clock::now() >= deadline)
      return false;
  return true;
}

void Context::noteRaces(const WorkName &work, const std::vector<Access> &accesses, const VectorClock &order) {
  history_.prune(hostOrder_);
  for (const Access &access : accesses) {
    uintptr_t begin = reinterpret_cast<uintptr_t>(access.buffer.address);
    bool writes = access.buffer.access != SLUICE_READ;
    std::optional<Conflict> conflict = history_.note(begin, begin + access.buffer.bytes, writes, work, order);
    if (conflict && settings_.reportRaces)
      throw Error(SLUICE_INTERNAL, "race: " + *work.text + (writes ? " writes " : " reads ") +
                                       bytesText(access.device, conflict->begin, conflict->end) + ", which " +
                                       *conflict->earlier.text + (conflict->earlierWrites ? " writes" : " reads") +
                                       ", and nothing orders the two");
  }
}

void Context::put(Queue &queue, Piece piece) {
  checkAccesses(piece);
  queue.captured ? queue.captured->pieces.push_back(std::move(piece)) : enqueue(queue, piece);
}

void Context::enqueue(Queue &queue, const Piece &piece) {
  queue.order.join(hostOrder_);
  uint64_t sequence = scheduler_.end(queue.number).sequence + 1;
  queue.order.advance(queue.number, sequence);
  auto text = std::make_shared<const std::string>(piece.what + " in queue " + queue.name);
  noteRaces({queue.number, sequence, text}, piece.accesses, queue.order);
  queue.last = piece.schedule(earliest(queue));
  queue.free = queue.last.end;
  scheduler_.enqueue(queue.number, piece.work);
}

void Context::beginCapture(Queue &queue) {
  checkCapturesNot(queue, "begin another capture");
  queue.captured = Sequence{queue.device, {}};
}

Sequence Context::endCapture(Queue &queue) {
  if (!queue.captured)
    throw Error(SLUICE_USAGE, "sim: queue " + queue.name + " does not capture");
  return *std::exchange(queue.captured, std::nullopt);
}

/// Each piece has its own place in the queue, so that other queues come between them as they do elsewhere.
void Context::replay(Queue &queue, const Sequence &sequence) {
  checkCapturesNot(queue, "replay");
  if (sequence.device != queue.device)
    throw Error(SLUICE_USAGE, "sim: what was captured for " + deviceText(sequence.device) +
                                  " is replayed in a queue of " + deviceText(queue.device));
  for (const Piece &piece : sequence.pieces)
    checkAccesses(piece);
  double start = earliest(queue);
  for (const Piece &piece : sequence.pieces) {
    enqueue(queue, piece);
    start = &piece == &sequence.pieces.front() ? queue.last.start : start;
  }
  queue.last.start = sequence.pieces.empty() ? queue.last.start : start;
}

//===- work -------------------------------------------------------------------------------------------------------===//

void Context::copy(Queue &queue, const sluice_copy &copy) {
  std::string what = "copy" + (copy.label && *copy.label ? " of " + std::string(copy.label) : std::string());
  for (int32_t device : {copy.from_device, copy.to_device})
    if (device != SLUICE_HOST)
      memory(device); // checks the number
  if (queue.captured && (copy.from_device != queue.device || copy.to_device != queue.device))
    checkCapturesNot(queue, "copy from one memory to another");
  Buffer from{const_cast<void *>(copy.from), copy.bytes, SLUICE_READ}, to{copy.to, copy.bytes, SLUICE_WRITE};
  std::pair<int32_t, int32_t> ends{copy.from_device, copy.to_device};
  auto schedule = [this, ends, bytes = copy.bytes](double earliest) {
    auto [start, end] = links_.schedule(ends.first, ends.second, bytes, earliest);
    return Interval{start, end};
  };
  auto work = [this, ends, from, to] {
    std::vector<Buffer> locked;
    if (ends.first != SLUICE_HOST)
      locked.push_back(from);
    if (ends.second != SLUICE_HOST)
      locked.push_back(to);
    Unlocked unlocked(std::move(locked));
    std::memmove(to.address, from.address, from.bytes);
    auto &[copies, bytes] = counts_[ends];
    ++copies;
    bytes += static_cast<int64_t>(from.bytes);
  };
  put(queue, {what, {{"its source", ends.first, from}, {"its destination", ends.second, to}}, schedule, work});
}

namespace {

/// What a stage's tasks need, for parallel_for.
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
  if (!settings_.unevenTable)
    return kernelSeconds(rates, kind, launch.flops, launch.bytes);
  LaunchWork work{kind, launch.flops};
  for (const Buffer &buffer : buffersOf(launch)) {
    work.bufferBytes += static_cast<double>(buffer.bytes);
    work.writtenBytes += buffer.access == SLUICE_READ ? 0 : static_cast<double>(buffer.bytes);
  }
  return unevenSeconds(rates, work);
}

void Context::launch(Queue &queue, const sluice_launch &launch) {
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
      services_.parallel_for(services_.context, stage.tasks, runTasks, &call);
    }
  };
  put(queue, {what, std::move(accesses), schedule, work});
}

void Context::discard(Queue &queue, void *address, size_t bytes) {
  Buffer buffer{address, bytes, SLUICE_WRITE};
  auto schedule = [](double earliest) { return Interval{earliest, earliest}; };
  bool onHost = queue.device == SLUICE_HOST;
  auto work = [onHost, buffer] {
    Unlocked unlocked(onHost ? std::vector<Buffer>() : std::vector{buffer});
    std::memset(buffer.address, kPoison, buffer.bytes);
  };
  put(queue, {"discarding", {{"what is discarded", queue.device, buffer}}, schedule, work});
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
