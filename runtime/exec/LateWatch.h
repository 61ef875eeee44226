// A thread that sees when replicas of this process have been waiting for another one at a collective for too long. No error
// ever comes of that by itself: the others wait in their backends, or for the thread of the one that stays away.
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
  /// Calls `onLate` once, in its thread, with who is late for what. The attendance must outlive this.
  LateWatch(const Attendance &attendance, double deadline, std::function<void(const std::string &message)> onLate);
  LateWatch(const LateWatch &) = delete;
  LateWatch &operator=(const LateWatch &) = delete;
  ~LateWatch();

private:
  void watch();
  /// False if this ends instead.
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
