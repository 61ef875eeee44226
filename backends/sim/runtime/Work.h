// Work, its queues, and the positions that events hold.
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

/// A time interval of the virtual clock, in seconds since the machine was created.
struct Interval {
  double start = 0, end = 0;
};

/// Bytes that a piece of work touches.
struct Access {
  const char *what; // a description of the bytes for errors, e.g. "its source"
  int32_t device;
  Buffer buffer;
};

/// A piece of work, before it has a position in a queue.
struct Piece {
  std::string what;
  std::vector<Access> accesses;
  std::function<Interval(double earliest)> schedule; // reserves and returns its time, at `earliest` or later
  std::function<void()> work;
};

/// Work captured in a queue, which can be replayed in any queue of its device.
struct Sequence {
  int32_t device;
  std::vector<Piece> pieces;
};

/// The error of work that failed after submission. It is reported once, to the first host that waits for the work.
struct Failure {
  Error error;
  bool isTold = false;
};
using Failures = std::vector<std::shared_ptr<Failure>>;

struct Queue {
  size_t number; // the scheduler's
  int32_t device;
  std::string name;
  double free = 0;                  // the time at which the next piece of work can start
  Interval last;                    // the time of the last piece of work
  VectorClock order;                // what happens before the next piece of work
  Failures failures;                // of its work
  std::optional<Sequence> captured; // the captured work, while capturing
  bool isDropped = false;

  // While held, because its progress is unknown: the reason, and the work submitted since then.
  std::function<std::string()> heldBy;
  std::deque<std::function<void()>> backlog;
};

/// A position in a queue, held by an event. It is unknown as long as earlier work is held.
struct Recording {
  const Queue *queue;
  bool isKnown = false;
  std::vector<Queue *> held; // queues that wait until it is known
  QueuePosition position;
  double reached = 0; // the time at which the position is reached
  Interval last;      // the time of the last piece of work before it
  VectorClock order;
  Failures failures; // of work before it
};

/// The work that the thread of a context has waited for, and its time.
struct Host {
  VectorClock order;
  double time = 0;
};

/// The arrival of a rank at an exchange.
struct Arrival {
  Queue *queue;
  Host host; // time of submission
  std::string what;
  std::vector<Access> accesses;
};

} // namespace sluice::sim
