// Faults of memory, copies, launches and waits.
#include "tests/conformance/faulty/Faulty.h"

#include <cstring>
#include <vector>

namespace sluice::faulty {

static sluice_backend_run sound; // without the fault

static sluice_status copyShort(sluice_queue *queue, const sluice_copy *copy) {
  sluice_copy less = *copy;
  less.bytes -= less.bytes > 64;
  return sound.copy(queue, &less);
}

static sluice_status copyFromSomewhere(sluice_queue *queue, const sluice_copy *copy) {
  return copy->from && copy->to ? sound.copy(queue, copy) : SLUICE_INVALID;
}

static sluice_status allocateUsed(sluice_run *run, int32_t device, size_t bytes, void **address) {
  sluice_status status = sound.allocate(run, device, bytes, address);
  if (status == SLUICE_OK)
    std::memset(*address, 1, bytes);
  return status;
}

static sluice_status clearNothing(sluice_run *, int32_t, void *) { return SLUICE_OK; }

static std::vector<std::pair<sluice_queue *, sluice_copy>> postponed;

static sluice_status copyLater(sluice_queue *queue, const sluice_copy *copy) {
  postponed.emplace_back(queue, *copy);
  return SLUICE_OK;
}

static sluice_status copyNow(sluice_queue *queue) {
  for (auto &[its, copy] : std::exchange(postponed, {}))
    sound.copy(its, &copy);
  return sound.synchronize_queue(queue);
}

static sluice_status launchNothing(sluice_queue *, const sluice_launch *) { return SLUICE_OK; }
static const char *noError(sluice_run *) { return ""; }
static sluice_status crash(sluice_queue *, sluice_event *) { __builtin_trap(); }

const sluice_backend_compile *addFault(sluice_backend_run &run) {
  sound = run;
  if (kFault == "short_copies")
    run.copy = copyShort;
  else if (kFault == "refused_nothing")
    run.copy = copyFromSomewhere;
  else if (kFault == "pretended_haste") {
    run.copy = copyLater;
    run.synchronize_queue = copyNow;
  } else if (kFault == "used_memory")
    run.allocate = allocateUsed;
  else if (kFault == "kept_bytes")
    run.clear = clearNothing;
  else if (kFault == "pretended_launches")
    run.launch = launchNothing;
  else if (kFault == "no_reasons")
    run.last_error = noError;
  else if (kFault == "crashing_waits")
    run.wait = crash;
  return nullptr;
}

} // namespace sluice::faulty
