#include "runtime/device/Attendance.h"

#include "runtime/base/Text.h"

namespace sluice::runtime {

void Attendance::come(size_t replica, const std::string &collective) {
  std::lock_guard lock(mutex_);
  size_t at = came_[replica]++ - first_;
  if (at == open_.size())
    open_.push_back({&collective, 0});
  ++open_[at].arrived;
  while (!open_.empty() && open_.front().arrived == came_.size()) {
    open_.pop_front();
    ++first_;
  }
}

std::optional<uint64_t> Attendance::awaited() const {
  std::lock_guard lock(mutex_);
  return open_.empty() ? std::nullopt : std::optional(first_);
}

std::string Attendance::whoIsLate(uint64_t number) const {
  std::lock_guard lock(mutex_);
  if (open_.empty() || first_ != number)
    return "";
  std::vector<std::string> late;
  for (size_t replica = 0; replica < came_.size(); ++replica)
    if (came_[replica] <= number)
      late.push_back(std::to_string(replica));
  return concat(late.size() == 1 ? "replica " : "replicas ", listed(late), late.size() == 1 ? " has" : " have",
                " not come to ", *open_.front().collective);
}

} // namespace sluice::runtime
