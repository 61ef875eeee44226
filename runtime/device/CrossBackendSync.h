// Cross-backend synchronization: a queue of one backend waits for an event of another backend. If both backends can
// signal (run.h, "Signals"), the host does not wait: the queue waits for a number that the other backend writes. Such a
// wait is called a crossing. Otherwise the host waits for the event before it enqueues the dependent work.
//
// Backends have no interface to each other, so this file ensures:
//
//   progress  before the host waits for a position in a queue, it waits for all earlier crossings, in creation order;
//   errors    an error of a crossing's source is recorded, and the waiting queue is released; its results are not used;
//   order     if work crosses to another backend and back, an event of the first backend records this order:
//             sim detects races and computes times by events, and CUDA must see all order among its streams.
#pragma once

#include "runtime/device/DeviceContext.h"

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <utility>

namespace sluice::runtime {

/// A one-way path between backends: a queue of the source backend that waits for source events, and a counter in memory
/// of the target backend. Each crossing increments the counter.
class CrossingPath {
public:
  /// `device` belongs to the source backend.
  CrossingPath(DeviceContext &from, int32_t device, DeviceContext &to);

  DeviceContext &from() const { return from_; }
  /// Makes `reader`, a queue of the target backend, wait for an event of the source backend. Returns nothing, and
  /// enqueues no wait, if the target device does not support this. `serial` orders the crossings of all paths.
  std::optional<uint64_t> cross(const DeviceEvent &event, DeviceQueue &reader, uint64_t serial);
  /// The source event of a crossing; null if the host has already waited for it.
  const DeviceEvent *eventOf(uint64_t number) const;

  /// Whether the host has waited for all crossings up to this number.
  bool isFinished(uint64_t number) const { return open_.empty() || open_.front().number > number; }
  /// Serial number of the first open crossing.
  uint64_t nextSerial() const { return open_.front().serial; }
  uint64_t lastNumber() const { return last_; }
  /// Waits for the first open crossing. It is then finished, and the waiting queue is released even if the source's
  /// work failed. If the deadline expires, the crossing stays open.
  sluice_status finishNext();
  /// The same without waiting; false if the crossing is not complete. Throws the error of failed work.
  bool tryNext();
  /// Releases all waiting queues.
  void letGo();

private:
  struct Crossing {
    uint64_t number, serial;
    DeviceEvent event; ///< in the path's queue
  };

  /// Writes the number, which releases the queues that wait for it or a smaller number.
  void letGoUpTo(uint64_t number);
  /// Finishes the first open crossing.
  void endNext();

  DeviceContext &from_;
  CopiedHostMemory memory_;
  DeviceQueue queue_;
  uint64_t last_ = 0;
  bool isRefused_ = false;       ///< the target device does not support wait_for_signal
  std::deque<Crossing> open_;    ///< crossings that the host has not waited for
  std::deque<DeviceEvent> idle_; ///< events of finished crossings, for reuse
};

/// The paths between the backends of a replica.
class CrossBackendSync {
public:
  /// Makes `reader` wait for an event of another backend. False if the host must wait instead.
  bool cross(const DeviceEvent &event, DeviceQueue &reader);
  /// Waits for all crossings, then releases queues that still wait because of an error.
  void settle() noexcept;

private:
  std::map<std::pair<DeviceContext *, DeviceContext *>, std::unique_ptr<CrossingPath>> paths_;
  uint64_t made_ = 0; ///< number of crossings so far, the next one's serial number
};

/// Waits for the crossings before a position, then throws their first error, if any.
void finish(const CrossedPaths &crossed);
/// Whether these crossings are complete, without waiting.
bool areDone(const CrossedPaths &crossed);
/// Adds the unfinished crossings in `others` to `crossed`, and drops the finished ones.
void join(CrossedPaths &crossed, const CrossedPaths &others);

} // namespace sluice::runtime
