// Faults of sequences, and of hosts' waiting with questions and deadlines; otherwise they do as `sim`.
#include "tests/conformance/faulty/Faulty.h"

#include <vector>

namespace sluice::faulty {

static sluice_backend_run sound; // without the fault

// eager_captures: what is captured is done at once, too.
static sluice_status copyTwice(sluice_queue *queue, const sluice_copy *copy) {
  sluice_sequence *kept = nullptr;
  if (sluice_status status = sound.copy(queue, copy); status != SLUICE_OK)
    return status;
  if (sound.capture_end(queue, &kept) != SLUICE_OK)
    return SLUICE_OK; // it captures nothing
  sound.replay(queue, kept);
  return sound.capture_begin(queue);
}

// forgotten_replays: a sequence is done once.
static std::vector<sluice_sequence *> replayed;

static sluice_status replayOnce(sluice_queue *queue, sluice_sequence *sequence) {
  for (sluice_sequence *earlier : replayed)
    if (earlier == sequence)
      return SLUICE_OK;
  replayed.push_back(sequence);
  return sound.replay(queue, sequence);
}

// late_arguments: of a copy in a sequence, the arguments are read when it is replayed.
static bool captures = false;
static std::vector<const sluice_copy *> late;

static sluice_status beginLate(sluice_queue *queue) {
  captures = true;
  late.clear();
  return sound.capture_begin(queue);
}

static sluice_status copyLate(sluice_queue *queue, const sluice_copy *copy) {
  if (!captures)
    return sound.copy(queue, copy);
  late.push_back(copy);
  return SLUICE_OK;
}

static sluice_status endLate(sluice_queue *queue, sluice_sequence **sequence) {
  captures = false;
  return sound.capture_end(queue, sequence);
}

static sluice_status replayLate(sluice_queue *queue, sluice_sequence *) {
  for (const sluice_copy *copy : late)
    sound.copy(queue, copy);
  return SLUICE_OK;
}

// stubborn_captures: a capture goes on after an error.
static sluice_status recordStubbornly(sluice_queue *queue, sluice_event *event) {
  sluice_status status = sound.record(queue, event);
  if (status != SLUICE_OK)
    sound.capture_begin(queue);
  return status;
}

// uncounted_replays: the copies of replays are counted once.
static sluice_status countFewer(sluice_run *run, sluice_copy_count *counts, size_t countSize, size_t capacity,
                                size_t *count) {
  sluice_status status = sound.copy_counts(run, counts, countSize, capacity, count);
  if (capacity > 0 && *count > 0)
    counts[0].copies = std::min<int64_t>(counts[0].copies, 2);
  return status;
}

static sluice_status sayDone(sluice_event *, int *done) {
  *done = 1;
  return SLUICE_OK;
}

static sluice_status doNotWait(sluice_event *, double) { return SLUICE_OK; }

const sluice_backend_compile *addFault(sluice_backend_run &run) {
  run = sound = loadRunHalf(SIM_RUN_HALF);
  if (kFault == "eager_captures")
    run.copy = copyTwice;
  else if (kFault == "forgotten_replays")
    run.replay = replayOnce;
  else if (kFault == "late_arguments") {
    run.capture_begin = beginLate;
    run.copy = copyLate;
    run.capture_end = endLate;
    run.replay = replayLate;
  } else if (kFault == "stubborn_captures")
    run.record = recordStubbornly;
  else if (kFault == "uncounted_replays")
    run.copy_counts = countFewer;
  else if (kFault == "hasty_queries")
    run.query = sayDone;
  else if (kFault == "pretended_deadlines")
    run.synchronize_until = doNotWait;
  return nullptr;
}

} // namespace sluice::faulty
