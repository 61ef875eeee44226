#include "runtime/plan/ScheduleModel.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace sluice::runtime {

namespace {

/// When a link carries copies.
class Link {
public:
  /// The start of a copy that takes `seconds`, at `earliest` or when the link next has the time.
  double take(double earliest, double seconds) {
    auto next = taken_.upper_bound(earliest);
    if (next != taken_.begin())
      --next;
    for (; next != taken_.end() && earliest + seconds > next->first; ++next)
      earliest = std::max(earliest, next->second);
    taken_[earliest] = earliest + seconds;
    return earliest;
  }

private:
  std::map<double, double> taken_; // starts and ends, in order
};

} // namespace

ScheduleModel::ScheduleModel(const Plan &plan, const Entry &entry, std::vector<double> seconds,
                             const std::function<bool(size_t)> &runsHere) {
  for (size_t i = 0; i < entry.actions.size(); ++i) {
    const Action &action = entry.actions[i];
    Work &work = call_.work.emplace_back(action.queue, seconds[i], action.waits);
    if (const Copy *copy = action.copy()) {
      work.link = {plan.deviceOf(copy->from), plan.deviceOf(copy->to)};
      work.isAsked = copy->when == Copy::When::asked;
    }
  }
  call_.inFlight = plan.inFlight;
  for (const Value &input : entry.inputs)
    call_.inputWaits.push_back(input.waits);
  for (size_t queue = 0; queue < plan.queues.size(); ++queue)
    call_.runsHere.push_back(runsHere(queue));
}

ScheduleModel::Prediction ScheduleModel::predict(int64_t calls) const {
  const std::vector<Work> &work = call_.work;
  Prediction prediction{{}, std::vector<Interval>(work.size())};
  std::vector<double> free(call_.runsHere.size());
  // Of the work of the last calls.
  std::vector<std::vector<double>> ended(static_cast<size_t>(call_.inFlight) + 1, std::vector<double>(work.size()));
  std::map<std::pair<size_t, size_t>, Link> links;
  double host = 0;
  for (int64_t call = 0; call < calls; ++call) {
    auto endOf = [&](const Wait &wait) {
      int64_t awaited = call - wait.calls;
      return awaited < 0 ? 0.0 : ended[static_cast<size_t>(awaited) % ended.size()][wait.action];
    };
    for (const std::vector<Wait> &input : call_.inputWaits)
      for (const Wait &wait : input)
        host = std::max(host, endOf(wait));
    double last = 0;
    for (size_t i = 0; i < work.size(); ++i) {
      const Work &piece = work[i];
      if (piece.isAsked)
        continue;
      double start = std::max(host, free[piece.queue]);
      for (const Wait &wait : piece.waits)
        start = std::max(start, endOf(wait));
      if (piece.link && piece.seconds > 0)
        start = links[*piece.link].take(start, piece.seconds);
      double end = start + piece.seconds;
      prediction.lastCall[i] = {start, end};
      ended[static_cast<size_t>(call) % ended.size()][i] = free[piece.queue] = end;
      if (call_.runsHere[piece.queue])
        host = end;
      last = std::max(last, end);
    }
    prediction.ends.push_back(last);
  }
  return prediction;
}

double ScheduleModel::serialSeconds() const {
  return std::accumulate(call_.work.begin(), call_.work.end(), 0.0,
                         [](double sum, const Work &piece) { return sum + piece.seconds; });
}

double steadySeconds(std::span<const double> ends) {
  size_t middle = ends.size() / 2;
  return (ends.back() - ends[middle]) / static_cast<double>(ends.size() - 1 - middle);
}

} // namespace sluice::runtime
