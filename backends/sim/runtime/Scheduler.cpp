#include "backends/sim/runtime/Scheduler.h"

#include <algorithm>
#include <cassert>

namespace sluice::sim {

static constexpr uint64_t kRedrawOneIn = 8; // pieces of work between two drawings of a queue's priority, on average

size_t Scheduler::addQueue() {
  queues_.emplace_back().priority = random_();
  return queues_.size() - 1;
}

QueuePosition Scheduler::push(size_t queue, Item item) {
  queues_[queue].items.push_back(std::move(item));
  ++pending_;
  return {queue, ++queues_[queue].issued};
}

QueuePosition Scheduler::enqueue(size_t queue, std::function<void()> work) {
  QueuePosition position = push(queue, {std::move(work), std::nullopt});
  while (pending_ > mostPending_)
    runAny();
  return position;
}

void Scheduler::wait(size_t queue, QueuePosition position) {
  if (!isDone(position) && position.queue != queue)
    push(queue, {nullptr, position});
}

void Scheduler::drop(size_t queue) {
  pending_ -= queues_[queue].items.size();
  queues_[queue].items.clear();
  queues_[queue].done = queues_[queue].issued;
}

bool Scheduler::isReady(const Queue &queue) const {
  return !queue.items.empty() && (!queue.items.front().waits || isDone(*queue.items.front().waits));
}

std::vector<uint64_t> Scheduler::findNeeded(QueuePosition position) const {
  std::vector<uint64_t> needed(queues_.size(), 0);
  std::vector<QueuePosition> open{position};
  while (!open.empty()) {
    QueuePosition next = open.back();
    open.pop_back();
    const Queue &queue = queues_[next.queue];
    for (uint64_t number = std::max(needed[next.queue], queue.done) + 1; number <= next.sequence; ++number)
      if (const auto &waits = queue.items[number - queue.done - 1].waits)
        open.push_back(*waits);
    needed[next.queue] = std::max(needed[next.queue], next.sequence);
  }
  return needed;
}

void Scheduler::drawPriorities() {
  for (Queue &queue : queues_)
    queue.priority = random_();
}

void Scheduler::runOne(const std::vector<uint64_t> &limits) {
  Queue *next = nullptr;
  for (size_t i = 0; i < queues_.size(); ++i) {
    Queue &queue = queues_[i];
    if (isReady(queue) && queue.done < limits[i] && (!next || queue.priority > next->priority))
      next = &queue;
  }
  assert(next && "work waits only for work that was put in before it");
  std::function<void()> work = std::move(next->items.front().work);
  next->items.pop_front();
  --pending_;
  ++next->done; // before it runs, so that work which fails does not block its queue
  if (work)
    work();
  if (random_() % kRedrawOneIn == 0)
    next->priority = random_();
}

void Scheduler::runAny() {
  if (pending_ > 0)
    runOne(std::vector<uint64_t>(queues_.size(), UINT64_MAX));
}

void Scheduler::runUntil(QueuePosition position) {
  if (isDone(position))
    return;
  drawPriorities();
  bool neededOnly = random_() % 2 == 0;
  std::vector<uint64_t> limits = neededOnly ? findNeeded(position) : std::vector<uint64_t>(queues_.size(), UINT64_MAX);
  while (!isDone(position))
    runOne(limits);
}

} // namespace sluice::sim
