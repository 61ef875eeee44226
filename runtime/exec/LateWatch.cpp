#include "runtime/exec/LateWatch.h"

#include "runtime/base/Text.h"

#include <chrono>

namespace sluice::runtime {

/// Polls per deadline. The deadline is counted in polls, so that the time during which the process is stopped (SIGSTOP)
/// does not count.
static constexpr int kGlances = 8;

LateWatch::LateWatch(const Attendance &attendance, double deadline, std::function<void(const std::string &)> onLate)
    : attendance_(attendance), deadline_(deadline), onLate_(std::move(onLate)), thread_([this] { watch(); }) {}

LateWatch::~LateWatch() {
  {
    std::lock_guard lock(mutex_);
    ends_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

bool LateWatch::sleep() {
  std::unique_lock lock(mutex_);
  return !changed_.wait_for(lock, std::chrono::duration<double>(deadline_ / kGlances), [&] { return ends_; });
}

void LateWatch::watch() {
  std::optional<uint64_t> seen;
  for (int glances = 0; sleep();) {
    std::optional<uint64_t> awaited = attendance_.awaited();
    glances = awaited && awaited == seen ? glances + 1 : 0;
    seen = awaited;
    if (glances < kGlances)
      continue;
    if (std::string late = attendance_.whoIsLate(*seen); !late.empty())
      return onLate_(concat(late, " within ", fixedText(deadline_, 1), " s"));
  }
}

} // namespace sluice::runtime
