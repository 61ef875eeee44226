// Faults of signals; otherwise they do as `sim`.
#include "tests/conformance/faulty/Faulty.h"

#include <atomic>
#include <mutex>

namespace sluice::faulty {

static sluice_backend_run sound; // without the fault

// early_signals: they are given when they are put in.
static sluice_status signalAtOnce(sluice_queue *, uint64_t *place, uint64_t number) {
  std::atomic_ref(*place).store(number);
  return SLUICE_OK;
}

// unheeded_signals: nothing waits for them.
static sluice_status goOn(sluice_queue *, const uint64_t *, uint64_t) { return SLUICE_OK; }

// one_for_another: any signal will do.
static sluice_status waitForAny(sluice_queue *queue, const uint64_t *place, uint64_t number) {
  return sound.wait_for_signal(queue, place, number > 0);
}

// captured_signals: a capture takes them.
static sluice_status signalAnyhow(sluice_queue *queue, uint64_t *place, uint64_t number) {
  sluice_sequence *kept = nullptr;
  if (sound.capture_end(queue, &kept) != SLUICE_OK)
    return sound.signal(queue, place, number);
  sound.sequence_destroy(kept);
  sound.signal(queue, place, number);
  return sound.capture_begin(queue);
}

// global_locks: one lock for all contexts, which is held while the host waits.
static std::mutex lock;
static sluice_status waitAlone(sluice_event *event, double seconds) {
  std::lock_guard<std::mutex> guard(lock);
  return sound.synchronize_until(event, seconds);
}
static sluice_status copyAlone(sluice_queue *queue, const sluice_copy *copy) {
  std::lock_guard<std::mutex> guard(lock);
  return sound.copy(queue, copy);
}

const sluice_backend_compile *addFault(sluice_backend_run &run) {
  run = sound = loadRunHalf(SIM_RUN_HALF);
  if (kFault == "early_signals")
    run.signal = signalAtOnce;
  else if (kFault == "unheeded_signals")
    run.wait_for_signal = goOn;
  else if (kFault == "one_for_another")
    run.wait_for_signal = waitForAny;
  else if (kFault == "captured_signals")
    run.signal = signalAnyhow;
  else if (kFault == "global_locks") {
    run.synchronize_until = waitAlone;
    run.copy = copyAlone;
  }
  return nullptr;
}

} // namespace sluice::faulty
