#include "runtime/plan/ScheduleModel.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>

namespace sluice::runtime {

namespace {

/// When a link carries copies.
class Link {
public:
  /// The start of a copy that takes `seconds`, at `earliest` or when the link next has the time.
  double take(double earliest, double seconds) {
    for (auto [begin, end] : taken_) {
      if (earliest + seconds <= begin)
        break;
      earliest = std::max(earliest, end);
    }
    taken_[earliest] = earliest + seconds;
    return earliest;
  }

private:
  std::map<double, double> taken_; // starts and ends, in order
};

} // namespace

ScheduleModel::ScheduleModel(const Plan &plan, const Entry &entry, std::vector<double> seconds,
                             std::function<bool(size_t)> runsHere)
    : plan_(plan), entry_(entry), seconds_(std::move(seconds)), runsHere_(std::move(runsHere)) {}

ScheduleModel::Prediction ScheduleModel::predict(int64_t calls) const {
  Prediction prediction{{}, std::vector<Interval>(entry_.actions.size())};
  std::vector<double> free(plan_.queues.size());
  std::array<std::vector<double>, mostCallsBack + 1> ended; // of the actions of the last calls
  for (std::vector<double> &call : ended)
    call.resize(entry_.actions.size());
  std::map<std::pair<size_t, size_t>, Link> links;
  double host = 0;
  for (int64_t call = 0; call < calls; ++call) {
    auto endOf = [&](const Wait &wait) {
      int64_t awaited = call - wait.calls;
      return awaited < 0 ? 0.0 : ended[static_cast<size_t>(awaited) % ended.size()][wait.action];
    };
    for (const Value &input : entry_.inputs)
      for (const Wait &wait : input.waits)
        host = std::max(host, endOf(wait));
    double last = 0;
    for (size_t i = 0; i < entry_.actions.size(); ++i) {
      const Action &action = entry_.actions[i];
      if (action.copy() && action.copy()->when == Copy::When::asked)
        continue;
      double start = std::max(host, free[action.queue]);
      for (const Wait &wait : action.waits)
        start = std::max(start, endOf(wait));
      if (const Copy *copy = action.copy(); copy && seconds_[i] > 0)
        start = links[{plan_.deviceOf(copy->from), plan_.deviceOf(copy->to)}].take(start, seconds_[i]);
      double end = start + seconds_[i];
      prediction.lastCall[i] = {start, end};
      ended[static_cast<size_t>(call) % ended.size()][i] = free[action.queue] = end;
      if (runsHere_(action.queue))
        host = end;
      last = std::max(last, end);
    }
    prediction.ends.push_back(last);
  }
  return prediction;
}

double ScheduleModel::serialSeconds() const { return std::accumulate(seconds_.begin(), seconds_.end(), 0.0); }

double steadySeconds(std::span<const double> ends) {
  size_t middle = ends.size() / 2;
  return (ends.back() - ends[middle]) / static_cast<double>(ends.size() - 1 - middle);
}

} // namespace sluice::runtime
