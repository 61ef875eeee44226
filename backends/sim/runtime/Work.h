// Work, the queues that it is put into, and what events hold of them.
#pragma once

#include "backends/sim/runtime/DeviceMemory.h"
#include "backends/sim/runtime/Races.h"
#include "backends/sim/runtime/Scheduler.h"

#include <cstddef>
#include <functional>
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

struct Queue {
  size_t number; // the scheduler's
  int32_t device;
  std::string name;
  double free = 0;                  // when the next piece of work can start
  Interval last;                    // piece of work
  VectorClock order;                // what happens before the next piece of work
  std::optional<Sequence> captured; // while it captures: what is kept
};

/// A position in a queue as an event holds it.
struct Recording {
  QueuePosition position;
  double reached = 0; // when the position is reached
  Interval last;      // the piece of work before it
  VectorClock order;
};

/// What the thread of a context has waited for, and until when.
struct Host {
  VectorClock order;
  double time = 0;
};

} // namespace sluice::sim
