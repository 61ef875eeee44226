// Work, the queues that it is put into, and what events hold of them.
#pragma once

#include "backends/sim/runtime/DeviceMemory.h"
#include "backends/sim/runtime/Error.h"
#include "backends/sim/runtime/Races.h"
#include "backends/sim/runtime/Scheduler.h"

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace sluice::sim {

/// On the virtual clock, in seconds since the machine was made.
struct Interval {
  double start = 0, end = 0;
};

/// Bytes that a piece of work touches.
struct Access {
  const char *what; // "reads" or "writes", with what it is
  int32_t device;
  Buffer buffer;
};

/// A piece of work, before it has a place in a queue.
struct Piece {
  std::string what;
  std::vector<Access> accesses;
  std::function<Interval(double earliest)> schedule; // when it runs, if it cannot before that
  std::function<void()> work;
};

/// What was put into a queue while it captured, for any queue of its device.
struct Sequence {
  int32_t device;
  std::vector<Piece> pieces;
};

/// What became of work that failed after it was put into a queue: the first who waits for it is told.
struct Failure {
  Error error;
  bool isTold = false;
};
using Failures = std::vector<std::shared_ptr<Failure>>;

struct Queue {
  size_t number; // the scheduler's
  int32_t device;
  std::string name;
  double free = 0;                  // when the next piece of work can start
  Interval last;                    // piece of work
  VectorClock order;                // what happens before the next piece of work
  Failures failures;                // of what is in it
  std::optional<Sequence> captured; // while it captures: what is kept
  bool isDropped = false;

  // While it is held, because it is not known when it goes on: what it waits for, and what was put in since then.
  std::function<std::string()> heldBy;
  std::deque<std::function<void()>> backlog;
};

/// A position in a queue as an event holds it. It is not known where it is as long as something before it is held.
struct Recording {
  const Queue *queue;
  bool isKnown = false;
  std::vector<Queue *> held; // until it is known
  QueuePosition position;
  double reached = 0; // when the position is reached
  Interval last;      // the piece of work before it
  VectorClock order;
  Failures failures; // of what is before it
};

/// What the thread of a context has waited for, and until when.
struct Host {
  VectorClock order;
  double time = 0;
};

/// Where a rank has come to an exchange.
struct Arrival {
  Queue *queue;
  Host host; // when it was put in
  std::string what;
  std::vector<Access> accesses;
};

} // namespace sluice::sim
