// Waits of one backend's queues for what another backend's queues do. Where both can signal (run.h, "Signals") the host does
// not wait in between; else it waits for the one before it puts work into the other.
//
// Backends know nothing of each other, so three things are done here:
//
//   progress  whoever is about to wait for a place first waits for all crossings before it, in the order they were made in;
//   errors    of what a crossing waits for are told there, and let go what waits for the crossing: nobody trusts it any more;
//   order     work that crossed, came back and is met by work of its own backend is an event there, too: sim looks for races and
//             tells times by events, and CUDA wants to see all order among its own streams.
#pragma once

#include "runtime/device/DeviceContext.h"

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <utility>

namespace sluice::runtime {

/// From one backend to another: a queue of the first, which waits for what is to be told, and a number in memory of the second.
/// Each crossing gives the next number.
class CrossingPath {
public:
  /// `device` is one of the first backend's.
  CrossingPath(DeviceContext &from, int32_t device, DeviceContext &to);

  DeviceContext &from() const { return from_; }
  /// Has `reader`, of the second backend, wait for an event of the first. None if its device cannot: nothing waits then.
  /// `serial` tells earlier crossings from later ones, on whichever path.
  std::optional<uint64_t> cross(const DeviceEvent &event, DeviceQueue &reader, uint64_t serial);
  /// The event of the first backend behind a crossing; null if it was waited for.
  const DeviceEvent *eventOf(uint64_t number) const;

  /// Whether crossings up to this one have been waited for.
  bool isFinished(uint64_t number) const { return open_.empty() || open_.front().number > number; }
  /// Of the first one that has not.
  uint64_t nextSerial() const { return open_.front().serial; }
  uint64_t lastNumber() const { return last_; }
  /// Waits for that, which is finished unless a deadline passed. If it failed, what waits for it in the second backend is let go.
  sluice_status finishNext();
  /// The same without waiting: whether it is done.
  bool tryNext();
  /// Lets go all that waits.
  void letGo();

private:
  struct Crossing {
    uint64_t number, serial;
    DeviceEvent event; ///< in the path's queue
  };

  void letGoUpTo(uint64_t number);
  void endNext();

  DeviceContext &from_;
  CopiedHostMemory memory_;
  DeviceQueue queue_;
  uint64_t last_ = 0;
  bool isRefused_ = false;       ///< by the second backend's device
  std::deque<Crossing> open_;    ///< which have not been waited for
  std::deque<DeviceEvent> idle_; ///< of those that have
};

/// The paths between the backends of a replica.
class CrossBackendSync {
public:
  /// Has `reader` wait for an event of another backend. False if that is the host's to do.
  bool cross(const DeviceEvent &event, DeviceQueue &reader);
  /// Waits for all crossings, and then lets go what still waits because of an error.
  void settle() noexcept;

private:
  std::map<std::pair<DeviceContext *, DeviceContext *>, std::unique_ptr<CrossingPath>> paths_;
  uint64_t made_ = 0;
};

/// Waits for the crossings before a place and throws the first error, when all of them are done.
void finish(const CrossedPaths &crossed);
/// Whether they are done, without waiting.
bool areDone(const CrossedPaths &crossed);
/// Adds the crossings before another place, but for those that are finished.
void join(CrossedPaths &crossed, const CrossedPaths &others);

} // namespace sluice::runtime
