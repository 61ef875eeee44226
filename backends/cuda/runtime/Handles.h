// What the C tables' handles are, and how errors leave them.
#pragma once

#include "backends/cuda/runtime/Context.h"
#include "backends/cuda/runtime/Error.h"
#include "backends/cuda/runtime/NcclGroup.h"

#include <memory>
#include <new>
#include <string>

struct sluice_group {
  std::shared_ptr<sluice::cuda::RankRegistry> ranks;
  std::shared_ptr<sluice::cuda::Clock> clock;
  std::shared_ptr<sluice::cuda::FastestAlgorithms> fastest;
};

struct sluice_run {
  std::unique_ptr<sluice::cuda::Context> context;    // null if it could not be opened
  std::shared_ptr<sluice::cuda::RankRegistry> ranks; // the group's, or its own
  sluice::cuda::NcclGroup ncclGroup;
  std::string error;
};

struct sluice_queue {
  sluice_run *run;
  sluice::cuda::Queue queue;
};

struct sluice_sequence {
  sluice_run *run;
  sluice::cuda::Sequence sequence;
};

struct sluice_event {
  sluice_run *run;
  sluice::cuda::Event event;
};

struct sluice_module {
  sluice_run *run;
  sluice::cuda::LoadedModule module;
};

namespace sluice::cuda {

/// Runs `body`; an error that it throws becomes the context's last one.
template <typename Body> sluice_status guarded(sluice_run *run, Body body) {
  try {
    body();
    return SLUICE_OK;
  } catch (const Error &error) {
    run->error = error.what();
    return error.status();
  } catch (const std::bad_alloc &) {
    run->error = "cuda: the host is out of memory";
    return SLUICE_EXHAUSTED;
  }
}

/// The same for a queue, whose capture an error ends.
template <typename Body> sluice_status guarded(sluice_queue *queue, Body body) {
  sluice_status status = guarded(queue->run, [&] { body(*queue->run->context, queue->queue); });
  if (status != SLUICE_OK)
    queue->run->context->abandonCapture(queue->queue);
  return status;
}

/// The same for work that is put into the queue.
template <typename Body> sluice_status guardedWork(sluice_queue *queue, Body body) {
  return guarded(queue, [&](Context &context, Queue &its) {
    std::shared_ptr<const WorkBegin> begin = context.beginWork(its);
    body(context, its);
    if (!its.captures)
      its.begin = std::move(begin);
  });
}

} // namespace sluice::cuda
