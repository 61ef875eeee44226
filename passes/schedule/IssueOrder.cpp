#include "passes/schedule/IssueOrder.h"

#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/STLExtras.h"
#include <deque>
#include <limits>
#include <set>

using llvm::ArrayRef;
using llvm::SmallVector;

namespace sluice::passes {

namespace {

class IssueOrdering {
public:
  IssueOrdering(ArrayRef<QueuedAction> actions, unsigned queueCount)
      : actions(actions), queueCount(queueCount), after(actions.size()), chains(actions.size()) {
    for (auto [i, action] : llvm::enumerate(actions))
      for (unsigned earlier : action.before)
        after[earlier].push_back(i);
    for (size_t i = actions.size(); i-- > 0;) {
      for (unsigned next : after[i])
        chains[i] = std::max(chains[i], chains[next]);
      chains[i] += actions[i].seconds;
    }
  }

  SmallVector<unsigned> run() { return issue(simulate()); }

private:
  /// The actions that a queue could run next.
  struct Ready {
    std::set<std::pair<double, unsigned>> later; // by earliest start; an action of several queues is in its first
    std::set<std::pair<double, unsigned>> now;   // by negated length of the longest chain
    double free = 0;
  };

  /// Every action once, in the order of its simulated start.
  SmallVector<unsigned> simulate() {
    std::vector<Ready> ready(queueCount);
    SmallVector<unsigned> open(actions.size());
    SmallVector<double> from(actions.size(), 0);
    for (auto [i, action] : llvm::enumerate(actions)) {
      open[i] = action.before.size();
      if (action.before.empty())
        ready[action.queues.front()].later.insert({0.0, i});
    }
    SmallVector<unsigned> order;
    while (order.size() < actions.size()) {
      double earliest = std::numeric_limits<double>::infinity();
      Ready *best = nullptr;
      for (Ready &queue : ready) {
        while (!queue.later.empty() && queue.later.begin()->first <= queue.free) {
          unsigned next = queue.later.begin()->second;
          queue.now.insert({-chains[next], next});
          queue.later.erase(queue.later.begin());
        }
        if (queue.now.empty() && queue.later.empty())
          continue;
        double start = queue.now.empty() ? queue.later.begin()->first : queue.free;
        if (start < earliest)
          earliest = start, best = &queue;
      }
      if (best->now.empty()) { // the queue is idle until then
        best->free = earliest;
        continue;
      }
      unsigned taken = best->now.begin()->second;
      best->now.erase(best->now.begin());
      order.push_back(taken);
      double end = occupy(ready, actions[taken]);
      for (unsigned next : after[taken]) {
        from[next] = std::max(from[next], end);
        if (--open[next] == 0)
          ready[actions[next].queues.front()].later.insert({from[next], next});
      }
    }
    return order;
  }

  /// Occupies the queues of an action from the time when all are free; returns its end.
  static double occupy(std::vector<Ready> &ready, const QueuedAction &action) {
    double start = 0;
    for (unsigned queue : action.queues)
      start = std::max(start, ready[queue].free);
    for (unsigned queue : action.queues)
      ready[queue].free = start + action.seconds;
    return start + action.seconds;
  }

  /// The same order in each queue, but actions of other queues are issued before the host computes.
  SmallVector<unsigned> issue(ArrayRef<unsigned> byStart) {
    std::vector<std::deque<unsigned>> waiting(queueCount);
    for (unsigned action : byStart)
      for (unsigned queue : actions[action].queues)
        waiting[queue].push_back(action);
    SmallVector<unsigned> order;
    llvm::BitVector issued(actions.size());
    auto isNext = [&](unsigned action) {
      return llvm::all_of(actions[action].queues, [&](unsigned queue) { return waiting[queue].front() == action; });
    };
    auto isReady = [&](unsigned action) {
      return isNext(action) && !llvm::is_contained(actions[action].queues, 0u) &&
             llvm::all_of(actions[action].before, [&](unsigned other) { return issued.test(other); });
    };
    auto take = [&](unsigned action) {
      order.push_back(action);
      issued.set(action);
      for (unsigned queue : actions[action].queues)
        waiting[queue].pop_front();
    };
    while (order.size() < actions.size()) {
      for (bool progress = true; progress;) {
        progress = false;
        for (std::deque<unsigned> &queue : llvm::drop_begin(waiting))
          for (; !queue.empty() && isReady(queue.front()); progress = true)
            take(queue.front());
      }
      if (!waiting[0].empty())
        take(waiting[0].front()); // its dependences and its predecessors in its queues are issued
    }
    return order;
  }

  ArrayRef<QueuedAction> actions;
  unsigned queueCount;
  std::vector<SmallVector<unsigned, 4>> after; // actions that depend on it
  SmallVector<double> chains;                  // seconds of the longest chain that begins with it
};

} // namespace

SmallVector<unsigned> findIssueOrder(ArrayRef<QueuedAction> actions, unsigned queueCount) {
  return IssueOrdering(actions, queueCount).run();
}

} // namespace sluice::passes
