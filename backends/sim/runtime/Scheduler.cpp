#include "backends/sim/runtime/Scheduler.h"

#include <algorithm>

namespace sluice::sim {

static constexpr uint64_t kRedrawOneIn = 8; // pieces of a queue's work between two draws of its priority, on average

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
  while (pending_ > mostPending_ && runAny()) {
  }
  return position;
}

void Scheduler::wait(size_t queue, QueuePosition position) {
  if (!isDone(position) && position.queue != queue)
    push(queue, {nullptr, position});
}

void Scheduler::waitUntil(size_t queue, std::function<bool()> isOpen) {
  push(queue, {nullptr, std::nullopt, std::move(isOpen)});
}

void Scheduler::drop(size_t queue) {
  pending_ -= queues_[queue].items.size();
  queues_[queue].items.clear();
  queues_[queue].done = queues_[queue].issued;
}

bool Scheduler::isReady(const Queue &queue) const {
  if (queue.items.empty())
    return false;
  const Item &next = queue.items.front();
  return (!next.waits || isDone(*next.waits)) && (!next.isOpen || next.isOpen());
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

bool Scheduler::runOne(const std::vector<uint64_t> &limits) {
  Queue *next = nullptr;
  for (size_t i = 0; i < queues_.size(); ++i) {
    Queue &queue = queues_[i];
    if (queue.done < limits[i] && (!next || queue.priority > next->priority) && isReady(queue))
      next = &queue;
  }
  if (!next)
    return false;
  std::function<void()> work = std::move(next->items.front().work);
  next->items.pop_front();
  --pending_;
  ++next->done; // before it runs, so that failing work does not block its queue
  if (work)
    work();
  if (random_() % kRedrawOneIn == 0)
    next->priority = random_();
  return true;
}

bool Scheduler::runAny() { return pending_ > 0 && runOne(std::vector<uint64_t>(queues_.size(), UINT64_MAX)); }

bool Scheduler::runUntil(QueuePosition position) {
  if (isDone(position))
    return true;
  drawPriorities();
  bool neededOnly = random_() % 2 == 0;
  std::vector<uint64_t> limits = neededOnly ? findNeeded(position) : std::vector<uint64_t>(queues_.size(), UINT64_MAX);
  while (!isDone(position))
    if (!runOne(limits) && !runAny())
      return false;
  return true;
}

} // namespace sluice::sim
