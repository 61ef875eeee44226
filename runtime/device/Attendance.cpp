#include "runtime/device/Attendance.h"

#include "runtime/base/Text.h"

namespace sluice::runtime {

void Attendance::come(size_t replica, const std::string &collective) {
  std::lock_guard lock(mutex_);
  if (came_[replica]++ - first_ == open_.size())
    open_.push_back({&collective, 0});
}

void Attendance::go(size_t replica) {
  std::lock_guard lock(mutex_);
  ++open_[gone_[replica]++ - first_].gone;
  while (!open_.empty() && open_.front().gone == gone_.size()) {
    open_.pop_front();
    ++first_;
  }
}

std::optional<uint64_t> Attendance::awaited() const {
  std::lock_guard lock(mutex_);
  return open_.empty() ? std::nullopt : std::optional(first_);
}

std::vector<std::string> Attendance::behind(const std::vector<uint64_t> &counts, uint64_t number) const {
  std::vector<std::string> replicas;
  for (size_t replica = 0; replica < counts.size(); ++replica)
    if (counts[replica] <= number)
      replicas.push_back(std::to_string(replica));
  return replicas;
}

std::string Attendance::whoIsLate(uint64_t number) const {
  std::lock_guard lock(mutex_);
  if (open_.empty() || first_ != number)
    return "";
  std::vector<std::string> late = behind(came_, number);
  bool allCame = late.empty();
  if (allCame)
    late = behind(gone_, number);
  return concat(late.size() == 1 ? "replica " : "replicas ", listed(late), late.size() == 1 ? " has" : " have",
                " not come ", allCame ? "back from " : "to ", *open_.front().collective);
}

} // namespace sluice::runtime
