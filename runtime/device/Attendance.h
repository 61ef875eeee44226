// Which replicas of this process have come to which of their collectives, which all of them come to in one order.
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace sluice::runtime {

class Attendance {
public:
  explicit Attendance(size_t replicas) : came_(replicas), gone_(replicas) {}

  /// A replica comes to its next collective, "all_reduce of dw1"; the text must outlive this.
  void come(size_t replica, const std::string &collective);
  /// It comes back from the last one, which is over or left to its device.
  void go(size_t replica);

  /// The number of the first collective that replicas have come to and not all have come back from, if there is one.
  std::optional<uint64_t> awaited() const;
  /// "replica 1 has not come to all_reduce of dw1", or not come back from it, which may be all; empty if that is not the
  /// first awaited collective any more.
  std::string whoIsLate(uint64_t number) const;

private:
  struct Open {
    const std::string *collective;
    size_t gone; // replicas
  };

  std::vector<std::string> behind(const std::vector<uint64_t> &counts, uint64_t number) const;

  mutable std::mutex mutex_;
  std::vector<uint64_t> came_, gone_; // how often each replica did
  uint64_t first_ = 0;                // the number of the first that is open
  std::deque<Open> open_;             // that not all have come back from
};

} // namespace sluice::runtime
