// Launches that fail later: their errors surface when they are waited for ("late_errors", which is sound), or get lost.
#include "tests/conformance/faulty/Faulty.h"

#include <map>
#include <string>

namespace sluice::faulty {

namespace {

struct LateError {
  sluice_status status = SLUICE_OK;
  std::string why;
};

} // namespace

static sluice_backend_run sound; // fails at once
static sluice_run *context;
static std::map<sluice_queue *, LateError> ofQueue;
static std::map<sluice_event *, LateError> ofEvent;
static std::string surfaced; // what last_error says

static sluice_status open(const sluice_run_options *options, sluice_run **run) {
  sluice_status status = sound.open(options, run);
  context = *run;
  return status;
}

static sluice_status launch(sluice_queue *queue, const sluice_launch *launch) {
  if (sluice_status status = sound.launch(queue, launch); status != SLUICE_OK)
    ofQueue[queue] = {status, sound.last_error(context)};
  return SLUICE_OK;
}

static sluice_status record(sluice_queue *queue, sluice_event *event) {
  ofEvent[event] = ofQueue[queue];
  return sound.record(queue, event);
}

static sluice_status wait(sluice_queue *queue, sluice_event *event) {
  if (ofEvent[event].status != SLUICE_OK && kFault != "errors_lost_between_queues")
    ofQueue[queue] = ofEvent[event];
  return sound.wait(queue, event);
}

static sluice_status surface(LateError &error) {
  LateError now = std::exchange(error, {});
  surfaced = now.why;
  return kFault == "swallowed_late_errors" ? SLUICE_OK : now.status;
}

static sluice_status synchronize(sluice_event *event) {
  return kFault == "errors_lost_by_events" ? SLUICE_OK : surface(ofEvent[event]);
}
static sluice_status synchronizeQueue(sluice_queue *queue) { return surface(ofQueue[queue]); }
static const char *lastError(sluice_run *run) { return surfaced.empty() ? sound.last_error(run) : surfaced.c_str(); }

const sluice_backend_compile *addFault(sluice_backend_run &run) {
  sound = run;
  run.open = open;
  run.launch = launch;
  run.record = record;
  run.wait = wait;
  run.synchronize = synchronize;
  run.synchronize_queue = synchronizeQueue;
  run.last_error = lastError;
  run.immediate = 0;
  return nullptr;
}

} // namespace sluice::faulty
