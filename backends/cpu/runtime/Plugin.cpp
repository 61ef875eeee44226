// The run half of the CPU backend: the host's memory, and launches on the threads of the instance. It is what every
// executable runs the host's part of a plan with.
//
// Its queues do their work before the call returns, in the thread that asks for it. A worker thread of the host would
// take work into its queues, record events, and not say `immediate` any more; nothing else would change.
//
// An exchange with other ranks is made by the threads that wait for it: see Rendezvous.h, and Across.h for ranks in other
// processes.
#include "backends/cpu/runtime/Collectives.h"
#include "backends/cpu/runtime/Handles.h"
#include "sluice/backend/host.h"
#include "sluice/backend/run.h"

#include <cstring>
#include <new>
#include <string>

using namespace sluice::cpu;

//===- the device and its memory ----------------------------------------------------------------------------------===//

static sluice_status open(const sluice_run_options *options, sluice_run **run) {
  *run = new (std::nothrow) sluice_run{options->services, {}, {}, {}, {}, {}};
  if (!*run)
    return SLUICE_EXHAUSTED;
  sluice_group *group = SLUICE_HAS_MEMBER(sluice_run_options, options, group) ? options->group : nullptr;
  try {
    (*run)->hall = group ? group->hall : std::make_shared<Hall>();
  } catch (const std::bad_alloc &) {
    return SLUICE_EXHAUSTED;
  }
  if (options->settings && *options->settings)
    return (*run)->fail(SLUICE_USAGE, std::string("cpu has no settings; it was given '") + options->settings + "'");
  return SLUICE_OK;
}

static void close(sluice_run *run) { delete run; }

static sluice_status groupCreate(sluice_group **group) {
  try {
    *group = new sluice_group{std::make_shared<Hall>()};
    return SLUICE_OK;
  } catch (const std::bad_alloc &) {
    return SLUICE_EXHAUSTED;
  }
}

static void groupDestroy(sluice_group *group) { delete group; }

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

static sluice_status refuse(sluice_run *run, size_t bytes, int64_t free) {
  return run->fail(SLUICE_EXHAUSTED, "cpu:0 is out of memory: " + std::to_string(bytes) + " bytes were asked for, " +
                                         std::to_string(free) + " are free");
}

static sluice_status allocate(sluice_run *run, int32_t device, size_t bytes, void **address) {
  if (sluice_status status = run->checkDevice(device); status != SLUICE_OK)
    return status;
  int64_t free = readFreeBytes();
  if (free > 0 && bytes > static_cast<size_t>(free))
    return refuse(run, bytes, free);
  HostMemory block(bytes);
  *address = block.address();
  if (!*address)
    return refuse(run, bytes, free);
  run->blocks.try_emplace(*address, std::move(block));
  return SLUICE_OK;
}

static sluice_status release(sluice_run *run, int32_t, void *address) {
  return run->blocks.erase(address) > 0 ? SLUICE_OK
                                        : run->fail(SLUICE_USAGE, "what is released is no allocation of cpu:0");
}

//===- work: done before the call returns, so events and waiting have nothing to do -------------------------------===//

static sluice_status queueCreate(sluice_run *run, int32_t device, sluice_queue_kind, const char *,
                                 sluice_queue **queue) {
  *queue = new (std::nothrow) sluice_queue{run, device};
  if (!*queue)
    return SLUICE_EXHAUSTED;
  return device == SLUICE_HOST ? SLUICE_OK : run->checkDevice(device);
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
  sluice_run *run = queue->run;
  if (launch->function || launch->module)
    return run->fail(SLUICE_UNSUPPORTED, std::string("kernel ") + launch->name +
                                             ": cpu runs host code, and has no function '" +
                                             (launch->function ? launch->function : "") + "'");
  const sluice_run_services *services = run->services;
  for (size_t i = 0; i < launch->num_stages; ++i) {
    const sluice_launch_stage *stage = sluice_launch_stage_at(launch, i);
    StageCall call{stage->function, launch->addresses, launch->call->rows};
    services->parallel_for(services->context, stage->tasks, runTasks, &call);
  }
  return SLUICE_OK;
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
    half.takes_host_queues = 1;
    half.immediate = 1;
    half.collectives = &collectives();
    half.group_create = groupCreate;
    half.group_destroy = groupDestroy;
    return half;
  }();
  return &table;
}

extern "C" const sluice_backend *sluice_host_backend(void) {
  static const sluice_backend backend = {
      sizeof(backend), SLUICE_BACKEND_MAJOR, SLUICE_BACKEND_MINOR, "cpu", "the host", nullptr, runHalf()};
  return &backend;
}
