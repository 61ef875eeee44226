// The template of a run half; `tools/new backend NAME` copies it.
//
// One device, whose memory is the host's and whose queues finish work before a call returns. Replace, in this order,
// each by a call of your driver:
//   1. device_count, device_info   the devices that are there; none is fine.
//   2. allocate, release           device memory, zeroed, at multiples of 64 bytes.
//   3. copy                        host to device, device to host, device to device.
//   4. launch                      the functions that your compile half names, on addresses from `buffers`.
//   5. queues and events           work may then return before it is done, and `immediate` goes; until then, doing
//                                  it at once is correct.
//   6. what is optional, where it pays: everything of run.h behind `launch`. Sequences replay a step in one call,
//      host_allocate spares copies a staging, query and synchronize_until let a host look at a device that hangs.
//      A member that is absent costs nothing but what it would have saved, so null has none.
// `sluice conformance --backend NAME` checks all of that.
#include "sluice/backend/run.h"

#include <cstdlib>
#include <cstring>
#include <map>
#include <new>
#include <string>

static constexpr int64_t kMemoryBytes = 1'000'000'000;
static constexpr size_t kAlignment = 64;

struct sluice_run {
  std::string error;              // why the last call failed
  std::map<void *, size_t> sizes; // of what is allocated
  int64_t freeBytes = kMemoryBytes;

  sluice_status fail(sluice_status status, const std::string &why) {
    error = why;
    return status;
  }
  sluice_status checkDevice(int32_t device) {
    return device == 0
               ? SLUICE_OK
               : fail(SLUICE_UNSUPPORTED, "there is no device null:" + std::to_string(device) + "; there is one");
  }
};

struct sluice_queue {
  sluice_run *run;
};

struct sluice_event {};

//===- devices and memory -----------------------------------------------------------------------------------------===//

static sluice_status open(const sluice_run_options *options, sluice_run **run) {
  *run = new (std::nothrow) sluice_run;
  if (!*run)
    return SLUICE_EXHAUSTED;
  if (options->settings && *options->settings)
    return (*run)->fail(SLUICE_USAGE, std::string("null has no settings; it was given '") + options->settings + "'");
  return SLUICE_OK;
}

static void close(sluice_run *run) {
  for (auto [address, bytes] : run->sizes)
    std::free(address);
  delete run;
}

static const char *lastError(sluice_run *run) { return run->error.c_str(); }

static sluice_status deviceCount(sluice_run *, int32_t *count) {
  *count = 1;
  return SLUICE_OK;
}

static sluice_status deviceInfo(sluice_run *run, int32_t device, sluice_device_info *info) {
  info->name = "host memory";
  info->memory_bytes = kMemoryBytes;
  info->free_bytes = run->freeBytes;
  info->host_accessible = 1;
  return run->checkDevice(device);
}

static sluice_status allocate(sluice_run *run, int32_t device, size_t bytes, void **address) {
  if (sluice_status status = run->checkDevice(device); status != SLUICE_OK)
    return status;
  size_t rounded = (bytes / kAlignment + 1) * kAlignment;
  *address = bytes <= size_t(run->freeBytes) ? std::aligned_alloc(kAlignment, rounded) : nullptr;
  if (!*address)
    return run->fail(SLUICE_EXHAUSTED, "null:0 is out of memory: " + std::to_string(bytes) + " bytes were asked for, " +
                                           std::to_string(run->freeBytes) + " are free");
  std::memset(*address, 0, rounded);
  run->sizes[*address] = bytes;
  run->freeBytes -= int64_t(bytes);
  return SLUICE_OK;
}

static sluice_status release(sluice_run *run, int32_t, void *address) {
  auto found = run->sizes.find(address);
  if (found == run->sizes.end())
    return run->fail(SLUICE_USAGE, "what is released is no allocation of null:0");
  run->freeBytes += int64_t(found->second);
  run->sizes.erase(found);
  std::free(address);
  return SLUICE_OK;
}

//===- work: done before the call returns, so events and waiting have nothing to do -------------------------------===//

static sluice_status queueCreate(sluice_run *run, int32_t device, sluice_queue_kind, const char *,
                                 sluice_queue **queue) {
  *queue = new (std::nothrow) sluice_queue{run};
  return *queue ? run->checkDevice(device) : SLUICE_EXHAUSTED;
}

static void queueDestroy(sluice_queue *queue) { delete queue; }

static sluice_status eventCreate(sluice_run *, sluice_event **event) {
  *event = new (std::nothrow) sluice_event;
  return *event ? SLUICE_OK : SLUICE_EXHAUSTED;
}

static void eventDestroy(sluice_event *event) { delete event; }
static sluice_status record(sluice_queue *, sluice_event *) { return SLUICE_OK; }
static sluice_status wait(sluice_queue *, sluice_event *) { return SLUICE_OK; }
static sluice_status synchronize(sluice_event *) { return SLUICE_OK; }
static sluice_status synchronizeQueue(sluice_queue *) { return SLUICE_OK; }

static sluice_status copy(sluice_queue *, const sluice_copy *copy) {
  if (copy->bytes > 0) // else the addresses may be null
    std::memmove(copy->to, copy->from, copy->bytes);
  return SLUICE_OK;
}

static sluice_status launch(sluice_queue *queue, const sluice_launch *launch) {
  return queue->run->fail(SLUICE_UNSUPPORTED, std::string("null has no kernels, so it cannot launch ") + launch->name);
}

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
    half.immediate = 1;
    return half;
  }();
  static const sluice_backend backend = {sizeof(backend),
                                         SLUICE_BACKEND_MAJOR,
                                         SLUICE_BACKEND_MINOR,
                                         "null",
                                         "the template: memory and copies, no kernels",
                                         nullptr,
                                         &run};
  return &backend;
}
