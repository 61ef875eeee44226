#include "backends/cpu/runtime/Plugin.h"

#include "backends/cpu/runtime/HostInfo.h"

#include <cstring>
#include <map>
#include <new>
#include <sys/mman.h>
#include <vector>

using namespace sluice::cpu;

struct sluice_run {
  const sluice_run_services *services;
  HostInfo host;
  std::string error;
  std::map<void *, size_t> sizes; // of what is allocated

  sluice_status fail(sluice_status status, std::string why) {
    error = std::move(why);
    return status;
  }
  sluice_status checkDevice(int32_t device) {
    return device == 0
               ? SLUICE_OK
               : fail(SLUICE_UNSUPPORTED, "there is no device cpu:" + std::to_string(device) + "; there is one");
  }
};

struct sluice_queue {
  sluice_run *run;
};

struct sluice_event {};

//===- the device and its memory ----------------------------------------------------------------------------------===//

static sluice_status open(const sluice_run_options *options, sluice_run **run) {
  *run = new (std::nothrow) sluice_run{options->services, readHostInfo(), {}, {}};
  if (!*run)
    return SLUICE_EXHAUSTED;
  if (options->settings && *options->settings)
    return (*run)->fail(SLUICE_USAGE, std::string("cpu has no settings; it was given '") + options->settings + "'");
  return SLUICE_OK;
}

static void close(sluice_run *run) {
  for (auto [address, bytes] : run->sizes)
    munmap(address, bytes);
  delete run;
}

static const char *lastError(sluice_run *run) { return run->error.c_str(); }

static sluice_status deviceCount(sluice_run *, int32_t *count) {
  *count = 1;
  return SLUICE_OK;
}

static sluice_status deviceInfo(sluice_run *run, int32_t device, sluice_device_info *info) {
  if (sluice_status status = run->checkDevice(device); status != SLUICE_OK)
    return status;
  run->host = readHostInfo();
  info->name = run->host.name.c_str();
  info->memory_bytes = run->host.memoryBytes;
  info->free_bytes = run->host.freeBytes;
  info->cores = run->host.cores;
  info->clock_hz = run->host.clockHz;
  info->peak_flops = run->host.peakFlops;
  info->host_accessible = 1;
  return SLUICE_OK;
}

static sluice_status allocate(sluice_run *run, int32_t device, size_t bytes, void **address) {
  if (sluice_status status = run->checkDevice(device); status != SLUICE_OK)
    return status;
  // The kernel would promise more than there is, and kill the process when it is used.
  int64_t free = readHostInfo().freeBytes;
  size_t mapped = bytes == 0 ? 1 : bytes;
  *address = free > 0 && bytes > static_cast<size_t>(free)
                 ? MAP_FAILED
                 : mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (*address == MAP_FAILED)
    return run->fail(SLUICE_EXHAUSTED, "cpu:0 is out of memory: " + std::to_string(bytes) + " bytes were asked for, " +
                                           std::to_string(free) + " are free");
  run->sizes[*address] = mapped;
  return SLUICE_OK;
}

static sluice_status release(sluice_run *run, int32_t, void *address) {
  auto found = run->sizes.find(address);
  if (found == run->sizes.end())
    return run->fail(SLUICE_USAGE, "what is released is no allocation of cpu:0");
  munmap(address, found->second);
  run->sizes.erase(found);
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
  std::memmove(copy->to, copy->from, copy->bytes);
  return SLUICE_OK;
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

static sluice_status launch(sluice_queue *queue, const sluice_launch *launch) {
  if (launch->function || launch->module)
    return queue->run->fail(SLUICE_UNSUPPORTED, std::string("kernel ") + launch->name +
                                                    ": cpu runs host code, and has no function '" +
                                                    (launch->function ? launch->function : "") + "'");
  std::vector<void *> buffers;
  for (size_t i = 0; i < launch->num_buffers; ++i)
    buffers.push_back(launch->buffers[i].address);
  const sluice_run_services *services = queue->run->services;
  for (size_t i = 0; i < launch->num_stages; ++i) {
    StageCall call{launch->stages[i].function, buffers.data(), launch->rows};
    services->parallel_for(services->context, launch->stages[i].tasks, runTasks, &call);
  }
  return SLUICE_OK;
}

extern "C" const sluice_backend_run *sluice_cpu_backend_run(void) {
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
    return half;
  }();
  return &table;
}
