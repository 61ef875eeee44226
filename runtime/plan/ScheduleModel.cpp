#include "runtime/plan/ScheduleModel.h"

#include <algorithm>
#include <map>

namespace sluice::runtime {

using Piece = ScheduleModel::Work;

static size_t countAll(const std::vector<Piece> &work) {
  size_t count = work.size();
  for (const Piece &piece : work)
    count += countAll(piece.loop);
  return count;
}

namespace {

/// The busy intervals of a link.
class Link {
public:
  /// The start of a copy of `seconds` seconds: `earliest`, or the next free interval of the link.
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

/// End times of a list's work in its latest turns, which waits may refer to. A turn is a call or an iteration.
class Ends {
public:
  Ends(size_t work, int64_t turnsBack) : ended_(static_cast<size_t>(turnsBack) + 1, std::vector<double>(work)) {}

  double of(const Wait &wait, int64_t turn) const {
    int64_t awaited = turn - wait.calls;
    return awaited < 0 ? 0.0 : ended_[static_cast<size_t>(awaited) % ended_.size()][wait.action];
  }
  void set(size_t work, int64_t turn, double end) { ended_[static_cast<size_t>(turn) % ended_.size()][work] = end; }

private:
  std::vector<std::vector<double>> ended_;
};

/// The state of the simulation after some calls: queues, links and the host.
class Following {
public:
  explicit Following(const ScheduleModel::Call &call)
      : call_(call), intervals_(countAll(call.work)), free_(call.runsHere.size()),
        ends_(call.work.size(), call.inFlight) {}

  /// Simulates call number `call`, which follows the previous call. Returns its end time.
  double follow(int64_t call) {
    for (const std::vector<Wait> &input : call_.inputWaits)
      for (const Wait &wait : input)
        host_ = std::max(host_, ends_.of(wait, call));
    return turn(call_.work, ends_, call, /*number=*/0, /*isFirst=*/true);
  }

  /// The intervals of the last call's work, by number.
  std::vector<ScheduleModel::Interval> takeIntervals() { return std::move(intervals_); }

private:
  /// The loop iterations that are simulated individually; later iterations take as long as the last simulated one.
  static constexpr int64_t followed = 16;

  /// Simulates one turn of a list, whose work is numbered from `number` on. Returns its end time.
  double turn(const std::vector<Piece> &list, Ends &ends, int64_t turn, size_t number, bool isFirst) {
    double last = 0;
    for (size_t i = 0; i < list.size(); number += 1 + countAll(list[i].loop), ++i) {
      if (list[i].isAsked)
        continue;
      double start = host_;
      for (size_t queue : list[i].queues)
        start = std::max(start, free_[queue]);
      for (const Wait &wait : list[i].waits)
        start = std::max(start, ends.of(wait, turn));
      double end = list[i].loop.empty() ? work(list[i], start) : loop(list[i], start, number + 1);
      intervals_[number] = {isFirst ? start : intervals_[number].start, end};
      ends.set(i, turn, end);
      occupy(list[i], end);
      last = std::max(last, end);
    }
    return last;
  }

  /// Delays `start` until the copies' links are free, and occupies them. Returns the end time.
  double work(const Piece &piece, double &start) {
    if (piece.seconds > 0)
      for (auto link : piece.links)
        start = std::max(start, links_[link].take(start, piece.seconds));
    return start + piece.seconds;
  }

  double loop(const Piece &piece, double start, size_t number) {
    occupy(piece, start);
    Ends ends(piece.loop.size(), 1);
    double end = start, before = start;
    for (int64_t i = 0; i < std::min(piece.times, followed); ++i) {
      before = end;
      end = std::max(end, turn(piece.loop, ends, i, number, i == 0));
    }
    return end + static_cast<double>(std::max<int64_t>(piece.times - followed, 0)) * (end - before);
  }

  /// Occupies the queues, and the host if it runs their work.
  void occupy(const Piece &piece, double until) {
    for (size_t queue : piece.queues) {
      free_[queue] = until;
      if (call_.runsHere[queue])
        host_ = until;
    }
  }

  const ScheduleModel::Call &call_;
  std::vector<ScheduleModel::Interval> intervals_;
  std::vector<double> free_; // by queue: when it is free
  double host_ = 0;          // when the host is free
  Ends ends_;
  std::map<std::pair<size_t, size_t>, Link> links_;
};

} // namespace

/// The work of a list of actions; advances `number`.
static std::vector<Piece> workOf(const Plan &plan, const std::vector<Action> &actions,
                                 const std::vector<double> &seconds, size_t &number) {
  std::vector<Piece> list;
  for (const Action &action : actions) {
    Piece &work = list.emplace_back();
    work.queues = action.queues;
    work.seconds = seconds[number++];
    work.waits = action.waits;
    work.isAsked = action.isAsked();
    for (const Copy &copy : action.copies())
      work.links.push_back({plan.deviceOf(copy.from), plan.deviceOf(copy.to)});
    if (const Loop *loop = action.loop()) {
      work.times = loop->count;
      work.loop = workOf(plan, loop->actions, seconds, number);
    }
  }
  return list;
}

static double serialSecondsOf(const std::vector<Piece> &work) {
  double sum = 0;
  for (const Piece &piece : work)
    sum += piece.loop.empty() ? piece.seconds : static_cast<double>(piece.times) * serialSecondsOf(piece.loop);
  return sum;
}

ScheduleModel::ScheduleModel(const Plan &plan, const Entry &entry, const std::vector<double> &seconds,
                             const std::function<bool(size_t)> &runsHere) {
  size_t number = 0;
  call_.work = workOf(plan, entry.actions, seconds, number);
  call_.inFlight = plan.inFlight;
  for (const Value &input : entry.inputs)
    call_.inputWaits.push_back(input.waits);
  for (size_t queue = 0; queue < plan.queues.size(); ++queue)
    call_.runsHere.push_back(runsHere(queue));
}

ScheduleModel::Prediction ScheduleModel::predict(int64_t calls) const {
  Following following(call_);
  Prediction prediction;
  for (int64_t call = 0; call < calls; ++call)
    prediction.ends.push_back(following.follow(call));
  prediction.lastCall = following.takeIntervals();
  return prediction;
}

double ScheduleModel::serialSeconds() const { return serialSecondsOf(call_.work); }

double steadySeconds(std::span<const double> ends) {
  size_t middle = ends.size() / 2;
  return (ends.back() - ends[middle]) / static_cast<double>(ends.size() - 1 - middle);
}

} // namespace sluice::runtime
