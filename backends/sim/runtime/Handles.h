// What the C tables' handles are, and how errors leave them.
#pragma once

#include "backends/sim/runtime/Context.h"
#include "backends/sim/runtime/Error.h"

#include <memory>
#include <new>
#include <string>

struct sluice_group {
  std::shared_ptr<sluice::sim::Machine> machine; // null until its first context
};

struct sluice_run {
  std::unique_ptr<sluice::sim::Context> context; // null if it could not be opened
  std::string error;
};

struct sluice_queue {
  sluice_run *run;
  sluice::sim::Queue *queue;
};

struct sluice_sequence {
  sluice::sim::Sequence kept;
};

struct sluice_event {
  sluice_run *run;
  std::shared_ptr<sluice::sim::Recording> recording; // null: never recorded
};

namespace sluice::sim {

/// Runs `body`; an error that it throws becomes the context's last one.
template <typename Body> sluice_status guarded(sluice_run *run, Body body) {
  try {
    Machine::Turn turn = run->context->turn();
    body(*run->context);
    return SLUICE_OK;
  } catch (const Error &error) {
    run->error = error.what();
    return error.status();
  } catch (const std::bad_alloc &) {
    run->error = "sim: the host is out of memory";
    return SLUICE_EXHAUSTED;
  }
}

/// The same for a queue, whose capture an error ends.
template <typename Body> sluice_status guarded(sluice_queue *queue, Body body) {
  sluice_status status = guarded(queue->run, [&](Context &context) { body(context, *queue->queue); });
  if (status != SLUICE_OK)
    queue->queue->captured.reset();
  return status;
}

} // namespace sluice::sim
