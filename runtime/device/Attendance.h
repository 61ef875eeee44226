// Tracks how far the replicas of this process are in their collectives. All replicas execute their collectives in the
// same order.
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

  /// The replica enters its next collective, for example "all_reduce of dw1"; the text must outlive this.
  void come(size_t replica, const std::string &collective);
  /// The replica leaves its last collective, which is complete or enqueued on its device.
  void go(size_t replica);

  /// The number of the first collective that some replicas have entered and not all have left, if any.
  std::optional<uint64_t> awaited() const;
  /// "replica 1 has not come to all_reduce of dw1", or the same for replicas that have not left it. Empty if collective
  /// `number` is no longer the first open collective.
  std::string whoIsLate(uint64_t number) const;

private:
  struct Open {
    const std::string *collective;
    size_t gone; // number of replicas that left
  };

  /// The replicas whose count, `came_` or `gone_`, does not include collective `number`.
  std::vector<std::string> behind(const std::vector<uint64_t> &counts, uint64_t number) const;

  mutable std::mutex mutex_;
  std::vector<uint64_t> came_, gone_; // number of collectives that each replica entered and left
  uint64_t first_ = 0;                // number of the first open collective
  std::deque<Open> open_;             // collectives that not all replicas have left
};

} // namespace sluice::runtime
