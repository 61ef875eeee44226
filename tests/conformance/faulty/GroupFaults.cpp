// Faults of contexts that belong to a group; otherwise like `sim`.
#include "tests/conformance/faulty/Faulty.h"

#include <map>
#include <mutex>

namespace sluice::faulty {

static sluice_backend_run sound; // without the fault
static std::mutex mutex;
static std::map<sluice_queue *, sluice_run *> ofQueue;
static std::map<sluice_event *, sluice_run *> ofEvent;

static sluice_status createQueue(sluice_run *run, int32_t device, sluice_queue_kind kind, const char *name,
                                 sluice_queue **queue) {
  sluice_status status = sound.queue_create(run, device, kind, name, queue);
  std::lock_guard<std::mutex> lock(mutex);
  ofQueue[*queue] = run;
  return status;
}

static sluice_status createEvent(sluice_run *run, sluice_event **event) {
  sluice_status status = sound.event_create(run, event);
  std::lock_guard<std::mutex> lock(mutex);
  ofEvent[*event] = run;
  return status;
}

// unheeded_strangers: events of other contexts are taken for done.
static bool areStrangers(sluice_queue *queue, sluice_event *event) {
  std::lock_guard<std::mutex> lock(mutex);
  return ofQueue[queue] != ofEvent[event];
}

static sluice_status waitForItsOwn(sluice_queue *queue, sluice_event *event) {
  return areStrangers(queue, event) ? SLUICE_OK : sound.wait(queue, event);
}

// separate_clocks: each context counts the time from its first question on.
static sluice_status tellOwnTimes(sluice_event *event, double *start, double *end) {
  static std::map<sluice_run *, double> begun;
  sluice_status status = sound.event_times(event, start, end);
  double first = begun.try_emplace(ofEvent[event], *start).first->second;
  *start -= first;
  *end -= first;
  return status;
}

const sluice_backend_compile *addFault(sluice_backend_run &run) {
  run = sound = loadRunHalf(SIM_RUN_HALF);
  run.queue_create = createQueue;
  run.event_create = createEvent;
  if (kFault == "unheeded_strangers")
    run.wait = waitForItsOwn;
  else if (kFault == "separate_clocks")
    run.event_times = tellOwnTimes;
  return nullptr;
}

} // namespace sluice::faulty
