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
  /// What a queue could take.
  struct Ready {
    std::set<std::pair<double, unsigned>> later; // by the time from which it can start
    std::set<std::pair<double, unsigned>> now;   // by negated chain
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
        ready[action.queue].later.insert({0.0, i});
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
      best->free = earliest + actions[taken].seconds;
      for (unsigned next : after[taken]) {
        from[next] = std::max(from[next], best->free);
        if (--open[next] == 0)
          ready[actions[next].queue].later.insert({from[next], next});
      }
    }
    return order;
  }

  /// The same order in each queue, with what other queues do issued before the host computes.
  SmallVector<unsigned> issue(ArrayRef<unsigned> byStart) {
    std::vector<std::deque<unsigned>> waiting(queueCount);
    for (unsigned action : byStart)
      waiting[actions[action].queue].push_back(action);
    SmallVector<unsigned> order;
    llvm::BitVector issued(actions.size());
    auto isReady = [&](unsigned action) {
      return llvm::all_of(actions[action].before, [&](unsigned other) { return issued.test(other); });
    };
    auto take = [&](std::deque<unsigned> &queue) {
      order.push_back(queue.front());
      issued.set(queue.front());
      queue.pop_front();
    };
    while (order.size() < actions.size()) {
      for (bool progress = true; progress;) {
        progress = false;
        for (std::deque<unsigned> &queue : llvm::drop_begin(waiting))
          for (; !queue.empty() && isReady(queue.front()); progress = true)
            take(queue);
      }
      if (!waiting[0].empty())
        take(waiting[0]);
    }
    return order;
  }

  ArrayRef<QueuedAction> actions;
  unsigned queueCount;
  std::vector<SmallVector<unsigned, 4>> after; // actions that depend on it
  SmallVector<double> chains;                  // seconds until the end of the longest chain that begins with it
};

} // namespace

SmallVector<unsigned> findIssueOrder(ArrayRef<QueuedAction> actions, unsigned queueCount) {
  return IssueOrdering(actions, queueCount).run();
}

} // namespace sluice::passes
