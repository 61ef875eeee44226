// The run half of the CUDA backend: devices, streams and kernels behind the backend ABI.
#include "backends/cuda/runtime/Collectives.h"
#include "backends/cuda/runtime/Handles.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <tuple>

using namespace sluice::cuda;

/// The setting of a context: "products=own", "products=library", or nothing.
static Products productsIn(const std::string &settings) {
  if (settings.empty())
    return Products::LibraryIfThere;
  if (settings == "products=own")
    return Products::Own;
  if (settings == "products=library")
    return Products::Library;
  throw Error(SLUICE_USAGE, "cuda has no setting '" + settings + "'; it has products=own and products=library");
}

static sluice_group newGroup() {
  return {std::make_shared<RankRegistry>(), std::make_shared<Clock>(), std::make_shared<FastestAlgorithms>()};
}

static sluice_status open(const sluice_run_options *options, sluice_run **run) {
  *run = new (std::nothrow) sluice_run;
  if (!*run)
    return SLUICE_EXHAUSTED;
  return guarded(*run, [&] {
    bool isOfGroup = SLUICE_HAS_MEMBER(sluice_run_options, options, group) && options->group;
    sluice_group group = isOfGroup ? *options->group : newGroup();
    (*run)->ranks = group.ranks;
    (*run)->context =
        std::make_unique<Context>(productsIn(options->settings ? options->settings : ""), group.clock, group.fastest);
  });
}

static void close(sluice_run *run) { delete run; }

static const char *lastError(sluice_run *run) { return run->error.c_str(); }

static sluice_status deviceCount(sluice_run *run, int32_t *count) {
  *count = run->context->deviceCount();
  return SLUICE_OK;
}

static sluice_status deviceInfo(sluice_run *run, int32_t device, sluice_device_info *info) {
  return guarded(run, [&] { run->context->describe(run->context->device(device), *info); });
}

static sluice_status allocate(sluice_run *run, int32_t device, size_t bytes, void **address) {
  return guarded(run, [&] { *address = run->context->allocate(run->context->device(device), bytes); });
}

static sluice_status release(sluice_run *run, int32_t device, void *address) {
  return guarded(run, [&] { run->context->release(run->context->device(device), address); });
}

static sluice_status queueCreate(sluice_run *run, int32_t device, sluice_queue_kind, const char *,
                                 sluice_queue **queue) {
  return guarded(run, [&] { *queue = new sluice_queue{run, run->context->addQueue(run->context->device(device))}; });
}

static void queueDestroy(sluice_queue *queue) {
  guarded(queue->run, [&] { queue->run->context->remove(queue->queue); });
  delete queue;
}

static sluice_status eventCreate(sluice_run *run, sluice_event **event) {
  return guarded(run, [&] { *event = new sluice_event{run, {}}; });
}

static void eventDestroy(sluice_event *event) {
  guarded(event->run, [&] { event->run->context->remove(event->event); });
  delete event;
}

static sluice_status record(sluice_queue *queue, sluice_event *event) {
  return guarded(queue, [&](Context &context, Queue &its) { context.record(its, event->event); });
}

static sluice_status noteTimes(sluice_queue *queue, int on) {
  return guarded(queue, [&](Context &context, Queue &its) { context.noteTimes(its, on != 0); });
}

static sluice_status eventTimes(sluice_event *event, double *start, double *end) {
  return guarded(event->run, [&] { std::tie(*start, *end) = event->run->context->times(event->event); });
}

static sluice_status wait(sluice_queue *queue, sluice_event *event) {
  return guarded(queue, [&](Context &context, Queue &its) { context.wait(its, event->event); });
}

static sluice_status synchronize(sluice_event *event) {
  return guarded(event->run, [&] { event->run->context->synchronize(event->event); });
}

static sluice_status synchronizeQueue(sluice_queue *queue) {
  return guarded(queue, [](Context &context, Queue &its) { context.synchronize(its); });
}

static sluice_status moduleLoad(sluice_run *run, int32_t device, const void *blob, size_t bytes,
                                sluice_module **module) {
  return guarded(run, [&] {
    std::string_view image(static_cast<const char *>(blob), bytes);
    *module = new sluice_module{run, run->context->load(run->context->device(device), image)};
  });
}

static void moduleUnload(sluice_module *module) {
  guarded(module->run, [&] { module->run->context->unload(module->module); });
  delete module;
}

static sluice_status copy(sluice_queue *queue, const sluice_copy *copy) {
  return guardedWork(queue, [&](Context &context, Queue &its) { context.copy(its, *copy); });
}

static sluice_status launch(sluice_queue *queue, const sluice_launch *launch) {
  return guardedWork(queue, [&](Context &context, Queue &its) {
    if (!launch->module || !launch->function)
      throw Error(SLUICE_UNSUPPORTED, std::string("cuda runs kernels of its modules, and ") + launch->name +
                                          " is none" + (launch->function ? std::string(": ") + launch->function : ""));
    context.launch(its, launch->module->module, *launch);
  });
}

static sluice_status copyCounts(sluice_run *run, sluice_copy_count *counts, size_t countSize, size_t capacity,
                                size_t *count) {
  *count = 0;
  for (const auto &[ends, total] : run->context->counts()) {
    sluice_copy_count found{ends.first, ends.second, total.first, total.second};
    if (*count < capacity)
      sluice_copy_count_set(counts, countSize, *count, &found);
    ++*count;
  }
  return SLUICE_OK;
}

static sluice_status captureBegin(sluice_queue *queue) {
  return guarded(queue, [](Context &context, Queue &its) { context.beginCapture(its); });
}

static sluice_status captureEnd(sluice_queue *queue, sluice_sequence **sequence) {
  return guarded(queue, [&](Context &context, Queue &its) {
    *sequence = new sluice_sequence{queue->run, context.endCapture(its)};
  });
}

static sluice_status replay(sluice_queue *queue, sluice_sequence *sequence) {
  return guardedWork(queue, [&](Context &context, Queue &its) { context.replay(its, sequence->sequence); });
}

static void sequenceDestroy(sluice_sequence *sequence) {
  sequence->run->context->remove(sequence->sequence);
  delete sequence;
}

static sluice_status hostAllocate(sluice_run *run, size_t bytes, void **address) {
  return guarded(run, [&] { *address = run->context->allocateOnHost(bytes); });
}

static sluice_status hostRelease(sluice_run *run, void *address) {
  return guarded(run, [&] { run->context->releaseOnHost(address); });
}

static sluice_status query(sluice_event *event, int *done) {
  return guarded(event->run, [&] { *done = event->run->context->isDone(event->event); });
}

/// The driver has no such call: it is asked again and again, and not more often than the host has something to lose.
static sluice_status synchronizeUntil(sluice_event *event, double seconds) {
  using Clock = std::chrono::steady_clock;
  constexpr double kLongestWait = 1e9; // which the clock can tell
  constexpr std::chrono::microseconds kPause{20};
  std::chrono::duration<double> wait(std::min(seconds, kLongestWait));
  auto deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(wait);
  return guarded(event->run, [&] {
    while (!event->run->context->isDone(event->event)) {
      if (Clock::now() >= deadline)
        throw Error(SLUICE_DEADLINE, "cuda: work was not done within " + std::to_string(seconds) + " s");
      std::this_thread::sleep_for(kPause);
    }
  });
}

static sluice_status peerLink(sluice_run *run, int32_t from, int32_t to, sluice_peer_link *link) {
  return guarded(run, [&] {
    link->direct = run->context->reaches(run->context->device(from), run->context->device(to));
    link->bandwidth = link->latency = 0;
  });
}

static sluice_status giveSignal(sluice_queue *queue, uint64_t *place, uint64_t number) {
  return guarded(queue, [&](Context &context, Queue &its) { context.signal(its, place, number); });
}

static sluice_status waitForSignal(sluice_queue *queue, const uint64_t *place, uint64_t number) {
  return guarded(queue, [&](Context &context, Queue &its) { context.waitForSignal(its, place, number); });
}

/// Contexts of CUDA share each device's primary context: memory and events are all contexts' anyhow. The choices of
/// algorithms that were timed are not.
static sluice_status groupCreate(sluice_group **group) {
  try {
    *group = new sluice_group(newGroup());
    return SLUICE_OK;
  } catch (const std::bad_alloc &) {
    return SLUICE_EXHAUSTED;
  }
}

static void groupDestroy(sluice_group *group) { delete group; }

extern "C" const sluice_backend *sluice_backend_query(void) {
  static const sluice_backend_run run = [] {
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
    half.module_load = moduleLoad;
    half.module_unload = moduleUnload;
    half.copy_counts = copyCounts;
    half.event_times = eventTimes;
    half.capture_begin = captureBegin;
    half.capture_end = captureEnd;
    half.replay = replay;
    half.sequence_destroy = sequenceDestroy;
    half.host_allocate = hostAllocate;
    half.host_release = hostRelease;
    half.query = query;
    half.synchronize_until = synchronizeUntil;
    half.peer_link = peerLink;
    half.collectives = &collectives();
    half.group_create = groupCreate;
    half.group_destroy = groupDestroy;
    half.note_times = noteTimes;
    half.signal = giveSignal;
    half.wait_for_signal = waitForSignal;
    return half;
  }();
  static const sluice_backend backend = {
      sizeof(backend), SLUICE_BACKEND_MAJOR, SLUICE_BACKEND_MINOR, "cuda", "NVIDIA's devices", nullptr, &run};
  return &backend;
}
