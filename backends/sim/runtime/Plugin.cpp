// The simulator behind the run half of the backend ABI.
#include "backends/sim/runtime/Collectives.h"
#include "backends/sim/runtime/Handles.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <mutex>
#include <new>

using namespace sluice::sim;

static constexpr size_t kAlignment = 64; // of the vectors of the host, which runs the kernels

/// The group's, which its first context makes; one of its own without a group.
static std::shared_ptr<Machine> machineOf(const sluice_run_options &options) {
  Settings settings = parseSettings(options.settings ? options.settings : "");
  sluice_group *group = SLUICE_HAS_MEMBER(sluice_run_options, &options, group) ? options.group : nullptr;
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

static sluice_status open(const sluice_run_options *options, sluice_run **run) {
  *run = new (std::nothrow) sluice_run;
  if (!*run)
    return SLUICE_EXHAUSTED;
  try {
    (*run)->context = std::make_unique<Context>(*options->services, machineOf(*options));
    return SLUICE_OK;
  } catch (const Error &error) {
    (*run)->error = error.what();
    return error.status();
  } catch (const std::bad_alloc &) {
    return SLUICE_EXHAUSTED;
  }
}

static void close(sluice_run *run) { delete run; }

static sluice_status groupCreate(sluice_group **group) {
  *group = new (std::nothrow) sluice_group;
  return *group ? SLUICE_OK : SLUICE_EXHAUSTED;
}

static void groupDestroy(sluice_group *group) { delete group; }

static const char *lastError(sluice_run *run) { return run->error.c_str(); }

static sluice_status deviceCount(sluice_run *run, int32_t *count) {
  return guarded(run, [&](Context &context) { *count = context.machine().deviceCount(); });
}

static sluice_status deviceInfo(sluice_run *run, int32_t device, sluice_device_info *info) {
  return guarded(run, [&](Context &context) {
    info->name = "virtual accelerator";
    info->memory_bytes = context.machine().memory(device).capacity();
    info->free_bytes = context.machine().memory(device).freeBytes();
    info->cores = kAcceleratorRates.cores;
    info->clock_hz = kAcceleratorRates.clockHz;
    info->peak_flops = kAcceleratorRates.peakFlops;
    info->memory_bandwidth = kAcceleratorRates.memoryBandwidth;
    info->host_accessible = 0;
    info->link_bandwidth = context.machine().settings().linkBandwidth;
    info->link_latency = context.machine().settings().linkLatency;
    if (SLUICE_HAS_MEMBER(sluice_device_info, info, alignment))
      info->alignment = kAlignment;
    if (SLUICE_HAS_MEMBER(sluice_device_info, info, identity))
      info->identity = context.machine().identity(device).c_str();
  });
}

static sluice_status allocate(sluice_run *run, int32_t device, size_t bytes, void **address) {
  return guarded(run, [&](Context &context) { *address = context.machine().memory(device).allocate(bytes); });
}

static sluice_status release(sluice_run *run, int32_t device, void *address) {
  return guarded(run, [&](Context &context) { context.machine().release(device, address, context.host()); });
}

static sluice_status queueCreate(sluice_run *run, int32_t device, sluice_queue_kind, const char *name,
                                 sluice_queue **queue) {
  return guarded(run, [&](Context &context) {
    *queue = new sluice_queue{run, &context.machine().addQueue(device, name ? name : "")};
  });
}

static void queueDestroy(sluice_queue *queue) {
  guarded(queue->run, [&](Context &context) { context.machine().drop(*queue->queue, context.host()); });
  delete queue;
}

static sluice_status eventCreate(sluice_run *run, sluice_event **event) {
  return guarded(run, [&](Context &) { *event = new sluice_event{run, nullptr}; });
}

static void eventDestroy(sluice_event *event) { delete event; }

static sluice_status record(sluice_queue *queue, sluice_event *event) {
  return guarded(
      queue, [&](Context &context, Queue &its) { event->recording = context.machine().record(its, context.host()); });
}

static sluice_status wait(sluice_queue *queue, sluice_event *event) {
  return guarded(queue, [&](Context &context, Queue &its) {
    if (&event->run->context->machine() != &context.machine())
      throw Error(SLUICE_USAGE, "sim: queue " + its.name + " waits for an event of a context that is not of its group");
    if (event->recording)
      context.machine().wait(its, event->recording, context.host());
  });
}

static sluice_status synchronize(sluice_event *event) {
  return guarded(event->run, [&](Context &context) {
    if (event->recording)
      context.machine().synchronize(*event->recording, context.host());
  });
}

static sluice_status synchronizeQueue(sluice_queue *queue) {
  return guarded(queue, [](Context &context, Queue &its) {
    context.machine().synchronize(*context.machine().record(its, context.host()), context.host());
  });
}

static sluice_status copy(sluice_queue *queue, const sluice_copy *copy) {
  return guarded(queue, [&](Context &context, Queue &its) { context.copy(its, *copy); });
}

static sluice_status launch(sluice_queue *queue, const sluice_launch *launch) {
  return guarded(queue, [&](Context &context, Queue &its) { context.launch(its, *launch); });
}

static sluice_status discard(sluice_queue *queue, void *address, size_t bytes) {
  return guarded(queue, [&](Context &context, Queue &its) { context.discard(its, address, bytes); });
}

static sluice_status copyCounts(sluice_run *run, sluice_copy_count *counts, size_t countSize, size_t capacity,
                                size_t *count) {
  return guarded(run, [&](Context &context) {
    *count = 0;
    for (const auto &[ends, total] : context.counts()) {
      sluice_copy_count found{ends.first, ends.second, total.first, total.second};
      if (*count < capacity)
        sluice_copy_count_set(counts, countSize, *count, &found);
      ++*count;
    }
  });
}

static sluice_status eventTimes(sluice_event *event, double *start, double *end) {
  return guarded(event->run, [&](Context &) {
    if (!event->recording || !event->recording->isKnown)
      throw Error(SLUICE_USAGE, "sim: the event is not done, or was never recorded");
    *start = event->recording->last.start;
    *end = event->recording->last.end;
  });
}

static sluice_status captureBegin(sluice_queue *queue) {
  return guarded(queue, [](Context &context, Queue &its) { context.machine().beginCapture(its); });
}

static sluice_status captureEnd(sluice_queue *queue, sluice_sequence **sequence) {
  return guarded(
      queue, [&](Context &context, Queue &its) { *sequence = new sluice_sequence{context.machine().endCapture(its)}; });
}

static sluice_status replay(sluice_queue *queue, sluice_sequence *sequence) {
  return guarded(queue,
                 [&](Context &context, Queue &its) { context.machine().replay(its, sequence->kept, context.host()); });
}

static void sequenceDestroy(sluice_sequence *sequence) { delete sequence; }

static sluice_status hostAllocate(sluice_run *run, size_t bytes, void **address) {
  return guarded(run, [&](Context &context) { *address = context.allocateOnHost(bytes); });
}

static sluice_status hostRelease(sluice_run *run, void *address) {
  return guarded(run, [&](Context &context) { context.releaseOnHost(address); });
}

static sluice_status query(sluice_event *event, int *done) {
  return guarded(event->run, [&](Context &context) {
    *done = !event->recording || context.machine().query(*event->recording, context.host());
  });
}

static sluice_status synchronizeUntil(sluice_event *event, double seconds) {
  using Clock = std::chrono::steady_clock;
  constexpr double kLongestWait = 1e9; // which the clock can tell
  std::chrono::duration<double> wait(std::min(seconds, kLongestWait));
  auto deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(wait);
  return guarded(event->run, [&](Context &context) {
    if (event->recording && !context.machine().synchronizeUntil(*event->recording, context.host(), deadline))
      throw Error(SLUICE_DEADLINE, "sim: work was not done within " + std::to_string(seconds) + " s" +
                                       Machine::reasonOf(*event->recording));
  });
}

static sluice_status peerLink(sluice_run *run, int32_t from, int32_t to, sluice_peer_link *link) {
  return guarded(run, [&](Context &context) {
    for (int32_t device : {from, to})
      context.machine().memory(device); // checks the number
    bool same = from == to;
    link->direct = 1;
    link->bandwidth = same ? kAcceleratorRates.memoryBandwidth / 2 : context.machine().settings().linkBandwidth;
    link->latency = same ? kAcceleratorRates.launchSeconds : context.machine().settings().linkLatency;
  });
}

static sluice_status giveSignal(sluice_queue *queue, uint64_t *place, uint64_t number) {
  return guarded(queue,
                 [&](Context &context, Queue &its) { context.machine().signal(its, place, number, context.host()); });
}

static sluice_status waitForSignal(sluice_queue *queue, const uint64_t *place, uint64_t number) {
  return guarded(queue, [&](Context &context, Queue &its) {
    context.machine().waitForSignal(its, place, number, context.host());
  });
}

static const sluice_backend_run *runHalf() {
  static const sluice_backend_run table = [] {
    sluice_backend_run half{};
    half.struct_size = sizeof(half);
    half.major_version = SLUICE_BACKEND_MAJOR;
    half.minor_version = SLUICE_BACKEND_MINOR;
    half.open = open;
    half.close = close;
    half.last_error = lastError;
    half.device_count = deviceCount;
    half.device_info = deviceInfo;
    half.allocate = allocate;
    half.release = release;
    half.queue_create = queueCreate;
    half.queue_destroy = queueDestroy;
    half.event_create = eventCreate;
    half.event_destroy = eventDestroy;
    half.record = record;
    half.wait = wait;
    half.synchronize = synchronize;
    half.synchronize_queue = synchronizeQueue;
    half.copy = copy;
    half.launch = launch;
    half.discard = discard;
    half.copy_counts = copyCounts;
    half.collectives = &collectives();
    half.event_times = eventTimes;
    half.takes_host_queues = 1;
    half.capture_begin = captureBegin;
    half.capture_end = captureEnd;
    half.replay = replay;
    half.sequence_destroy = sequenceDestroy;
    half.host_allocate = hostAllocate;
    half.host_release = hostRelease;
    half.query = query;
    half.synchronize_until = synchronizeUntil;
    half.peer_link = peerLink;
    half.group_create = groupCreate;
    half.group_destroy = groupDestroy;
    half.signal = giveSignal;
    half.wait_for_signal = waitForSignal;
    half.lazy = 1;
    return half;
  }();
  return &table;
}

extern "C" const sluice_backend *sluice_backend_query(void) {
  static const sluice_backend backend = {sizeof(backend),
                                         SLUICE_BACKEND_MAJOR,
                                         SLUICE_BACKEND_MINOR,
                                         "sim",
                                         "virtual accelerators with hostile queues, a virtual clock and race detection",
                                         nullptr,
                                         runHalf()};
  return &backend;
}
