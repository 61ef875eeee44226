// Faults of signals; otherwise they do as `sim`.
#include "tests/conformance/faulty/Faulty.h"

#include <atomic>

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
  return nullptr;
}

} // namespace sluice::faulty
