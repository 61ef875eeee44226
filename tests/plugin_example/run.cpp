// The run half: memory, copies, and launches of the kernels. Queues do their work at once.
#include "abacus.h"

#include <cstdlib>
#include <cstring>
#include <map>
#include <new>
#include <string>

struct sluice_run {
  std::string error;
  std::map<void *, size_t> allocations;
  std::map<std::pair<int32_t, int32_t>, sluice_copy_count> counts;
};

struct sluice_queue {
  sluice_run *run;
};

struct sluice_event {};

namespace abacus {

static constexpr int64_t kMemoryBytes = 256'000'000;

static sluice_status fail(sluice_run *run, sluice_status status, const std::string &why) {
  run->error = why;
  return status;
}

static sluice_status open(const sluice_run_options *options, sluice_run **run) {
  *run = new (std::nothrow) sluice_run;
  if (!*run)
    return SLUICE_EXHAUSTED;
  if (options->settings && *options->settings)
    return fail(*run, SLUICE_USAGE, std::string("abacus has no settings; it was given '") + options->settings + "'");
  return SLUICE_OK;
}

static void close(sluice_run *run) {
  for (auto [address, bytes] : run->allocations)
    std::free(address);
  delete run;
}

static const char *lastError(sluice_run *run) { return run->error.c_str(); }

static sluice_status deviceCount(sluice_run *, int32_t *count) {
  *count = 1;
  return SLUICE_OK;
}

static sluice_status checkDevice(sluice_run *run, int32_t device) {
  return device == 0 ? SLUICE_OK : fail(run, SLUICE_UNSUPPORTED, "there is no device abacus:" + std::to_string(device));
}

static sluice_status deviceInfo(sluice_run *run, int32_t device, sluice_device_info *info) {
  info->name = "Abacus";
  info->memory_bytes = info->free_bytes = kMemoryBytes;
  info->cores = 1;
  return checkDevice(run, device);
}

static sluice_status allocate(sluice_run *run, int32_t device, size_t bytes, void **address) {
  if (sluice_status status = checkDevice(run, device); status != SLUICE_OK)
    return status;
  size_t rounded = (bytes / 64 + 1) * 64;
  *address = bytes <= size_t(kMemoryBytes) ? std::aligned_alloc(64, rounded) : nullptr;
  if (!*address)
    return fail(run, SLUICE_EXHAUSTED,
                "abacus:0 is out of memory: " + std::to_string(bytes) + " bytes were asked for; it has " +
                    std::to_string(kMemoryBytes));
  std::memset(*address, 0, rounded);
  run->allocations[*address] = bytes;
  return SLUICE_OK;
}

static sluice_status release(sluice_run *run, int32_t, void *address) {
  if (run->allocations.erase(address) == 0)
    return fail(run, SLUICE_USAGE, "what is released is no allocation of abacus:0");
  std::free(address);
  return SLUICE_OK;
}

static sluice_status queueCreate(sluice_run *run, int32_t device, sluice_queue_kind, const char *,
                                 sluice_queue **queue) {
  *queue = new (std::nothrow) sluice_queue{run};
  return *queue ? checkDevice(run, device) : SLUICE_EXHAUSTED;
}

static void queueDestroy(sluice_queue *queue) { delete queue; }

static sluice_status eventCreate(sluice_run *, sluice_event **event) {
  *event = new (std::nothrow) sluice_event;
  return *event ? SLUICE_OK : SLUICE_EXHAUSTED;
}

static void eventDestroy(sluice_event *event) { delete event; }
static sluice_status doneAlready(sluice_queue *, sluice_event *) { return SLUICE_OK; }
static sluice_status synchronize(sluice_event *) { return SLUICE_OK; }
static sluice_status synchronizeQueue(sluice_queue *) { return SLUICE_OK; }

static sluice_status copy(sluice_queue *queue, const sluice_copy *copy) {
  if (copy->bytes > 0) // else the addresses may be null
    std::memmove(copy->to, copy->from, copy->bytes);
  sluice_copy_count &count = queue->run->counts[{copy->from_device, copy->to_device}];
  count = {copy->from_device, copy->to_device, count.copies + 1, count.bytes + int64_t(copy->bytes)};
  return SLUICE_OK;
}

static sluice_status launch(sluice_queue *queue, const sluice_launch *launch) {
  Kernel kernel = launch->function ? findKernel(launch->function) : nullptr;
  if (!kernel || launch->parameters_bytes != sizeof(Parameters))
    return fail(queue->run, SLUICE_UNSUPPORTED, std::string("abacus has no kernel for ") + launch->name);
  Parameters parameters;
  std::memcpy(&parameters, launch->parameters, sizeof parameters);
  kernel(*launch, parameters);
  return SLUICE_OK;
}

static sluice_status copyCounts(sluice_run *run, sluice_copy_count *counts, size_t countSize, size_t capacity,
                                size_t *count) {
  *count = 0;
  for (const auto &[pair, total] : run->counts) {
    if (*count < capacity)
      sluice_copy_count_set(counts, countSize, *count, &total);
    ++*count;
  }
  return SLUICE_OK;
}

static sluice_backend_run makeRunHalf() {
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
  half.record = doneAlready;
  half.wait = doneAlready;
  half.synchronize = synchronize;
  half.synchronize_queue = synchronizeQueue;
  half.copy = copy;
  half.launch = launch;
  half.copy_counts = copyCounts;
  half.immediate = 1;
  return half;
}

const sluice_backend_run runHalf = makeRunHalf();

} // namespace abacus
