// A thread that detects replicas of this process that are late for a collective. A late replica raises no error by
// itself: the other replicas wait in their backends or for its thread.
#pragma once

#include "runtime/device/Attendance.h"

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace sluice::runtime {

class LateWatch {
public:
  /// Watches in a separate thread. If a replica is later than `deadline` seconds, calls `onLate` once, in that thread,
  /// with a text that contains the replica and the collective. The attendance must outlive this.
  LateWatch(const Attendance &attendance, double deadline, std::function<void(const std::string &message)> onLate);
  LateWatch(const LateWatch &) = delete;
  LateWatch &operator=(const LateWatch &) = delete;
  ~LateWatch();

private:
  void watch();
  /// Sleeps until the next poll; false if the watch ends.
  bool sleep();

  const Attendance &attendance_;
  double deadline_;
  std::function<void(const std::string &)> onLate_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ends_ = false;
  std::thread thread_;
};

} // namespace sluice::runtime
