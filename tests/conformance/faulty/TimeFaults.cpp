// Faults of times; otherwise they do as `sim`.
#include "tests/conformance/faulty/Faulty.h"

#include <vector>

namespace sluice::faulty {

static sluice_backend_run sound; // without the fault

// late_starts: work begins where it ends.
static sluice_status tellEnds(sluice_event *event, double *start, double *end) {
  sluice_status status = sound.event_times(event, start, end);
  *start = *end;
  return status;
}

// unasked_times: all events have times, wanted or not.
static sluice_status noteAnyhow(sluice_queue *, int) { return SLUICE_OK; }

// replays_in_pieces: each copy of a sequence is a piece of work.
static bool captures = false;
static std::vector<sluice_copy> kept;

static sluice_status beginPieces(sluice_queue *queue) {
  captures = true;
  kept.clear();
  return sound.capture_begin(queue);
}

static sluice_status keepPiece(sluice_queue *queue, const sluice_copy *copy) {
  if (captures)
    kept.push_back(*copy);
  return captures ? SLUICE_OK : sound.copy(queue, copy);
}

static sluice_status endPieces(sluice_queue *queue, sluice_sequence **sequence) {
  captures = false;
  return sound.capture_end(queue, sequence);
}

static sluice_status replayPieces(sluice_queue *queue, sluice_sequence *) {
  for (const sluice_copy &copy : kept)
    sound.copy(queue, &copy);
  return SLUICE_OK;
}

const sluice_backend_compile *addFault(sluice_backend_run &run) {
  run = sound = loadRunHalf(SIM_RUN_HALF);
  if (kFault == "late_starts")
    run.event_times = tellEnds;
  else if (kFault == "unasked_times")
    run.note_times = noteAnyhow;
  else if (kFault == "replays_in_pieces") {
    run.capture_begin = beginPieces;
    run.copy = keepPiece;
    run.capture_end = endPieces;
    run.replay = replayPieces;
  }
  return nullptr;
}

} // namespace sluice::faulty
