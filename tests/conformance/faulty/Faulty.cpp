// The run half of `null` with one fault, named by CONFORMANCE_FAULT, which the suite must find.
#include "sluice/backend/run.h"

#include <cstring>
#include <dlfcn.h>
#include <string_view>

static constexpr std::string_view kFault = CONFORMANCE_FAULT;

/// null's own table.
static const sluice_backend_run &sound() {
  static const sluice_backend *backend = [] {
    void *library = dlopen(NULL_RUN_HALF, RTLD_NOW | RTLD_LOCAL);
    return reinterpret_cast<sluice_backend_query_fn>(dlsym(library, "sluice_backend_query"))();
  }();
  return *backend->run;
}

static sluice_status copyShort(sluice_queue *queue, const sluice_copy *copy) {
  sluice_copy less = *copy;
  less.bytes -= less.bytes > 64;
  return sound().copy(queue, &less);
}

static sluice_status allocateUsed(sluice_run *run, int32_t device, size_t bytes, void **address) {
  sluice_status status = sound().allocate(run, device, bytes, address);
  if (status == SLUICE_OK)
    std::memset(*address, 1, bytes);
  return status;
}

static sluice_status launchNothing(sluice_queue *, const sluice_launch *) { return SLUICE_OK; }
static const char *noError(sluice_run *) { return ""; }
static sluice_status crash(sluice_queue *, sluice_event *) { __builtin_trap(); }

extern "C" const sluice_backend *sluice_backend_query(void) {
  static sluice_backend_run half = sound();
  if (kFault == "short_copies")
    half.copy = copyShort;
  else if (kFault == "used_memory")
    half.allocate = allocateUsed;
  else if (kFault == "pretended_launches")
    half.launch = launchNothing;
  else if (kFault == "no_reasons")
    half.last_error = noError;
  else if (kFault == "crashing_waits")
    half.wait = crash;
  static const sluice_backend backend = {sizeof(backend),
                                         SLUICE_BACKEND_MAJOR,
                                         SLUICE_BACKEND_MINOR,
                                         CONFORMANCE_FAULT,
                                         "for tests of the suite",
                                         nullptr,
                                         &half};
  return &backend;
}
