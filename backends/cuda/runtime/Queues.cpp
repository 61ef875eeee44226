// The queues of a context, which are streams of the driver, and their ordering.
#include "backends/cuda/runtime/Context.h"
#include "backends/cuda/runtime/Error.h"
#include "backends/cuda/runtime/Ranks.h"

#include <algorithm>
#include <chrono>
#include <thread>

namespace sluice::cuda {

static constexpr std::chrono::microseconds kWatchPause{20}; // between two polls of an event after exchanges

Queue Context::addQueue(Device &device) {
  makeCurrent(device);
  Queue queue{&device, nullptr};
  driver_.check(driver_.streamCreate(&queue.stream, kStreamNonBlocking), text(device));
  return queue;
}

void Context::remove(const Queue &queue) {
  makeCurrent(*queue.device);
  driver_.streamSynchronize(queue.stream);
  driver_.streamDestroy(queue.stream);
}

void Context::checkCapturesNot(const Queue &queue, const char *what) {
  if (queue.captures)
    throw Error(SLUICE_USAGE, text(*queue.device) + ": a queue that captures cannot " + what);
}

void Context::noteTimes(Queue &queue, bool on) {
  checkCapturesNot(queue, "begin or end to note times");
  if (!on) {
    queue.base.reset();
    queue.begin.reset();
    return;
  }
  makeCurrent(*queue.device);
  queue.base = clock_->baseOf(driver_, *queue.device);
}

std::shared_ptr<const WorkBegin> Context::beginWork(Queue &queue) {
  if (!queue.base || queue.captures)
    return nullptr;
  makeCurrent(*queue.device);
  queue.base = clock_->baseOf(driver_, *queue.device); // replaced when old
  return std::make_shared<WorkBegin>(queue.base, driver_, *queue.device, queue.stream);
}

void Context::record(const Queue &queue, Event &event) {
  checkCapturesNot(queue, "record events");
  makeCurrent(*queue.device);
  bool hasTimes = queue.base != nullptr;
  DriverEvent &its = event.events[{queue.device, hasTimes}];
  if (!its)
    driver_.check(driver_.eventCreate(&its, hasTimes ? kEventWithTimes : kEventWithoutTimes), text(*queue.device));
  driver_.check(driver_.eventRecord(its, queue.stream), text(*queue.device));
  event.recorded = its;
  event.device = queue.device;
  event.exchanges = queue.exchanges;
  event.begin = queue.begin;
}

std::pair<double, double> Context::times(const Event &event) const {
  if (!event.begin)
    throw Error(SLUICE_USAGE,
                "cuda: the event was not recorded, or the queue did not note the times of what was before it");
  makeCurrent(*event.device);
  return event.begin->timesUntil(event.recorded);
}

void Context::wait(Queue &queue, const Event &event) {
  checkCapturesNot(queue, "wait for events");
  if (!event.recorded)
    return;
  makeCurrent(*queue.device);
  driver_.check(driver_.streamWait(queue.stream, event.recorded, 0), text(*queue.device));
  for (const auto &[rank, number] : event.exchanges) {
    uint64_t &last = queue.exchanges[rank];
    last = std::max(last, number);
  }
}

/// Throws the error, if any, of exchanges before a position that a queue has reached.
static void passAll(const Exchanges &exchanges) {
  for (const auto &[rank, number] : exchanges)
    rank->pass(number);
}

/// NCCL's errors must be polled: an exchange whose peer has left would block its queue forever.
static void watchAll(const Exchanges &exchanges) {
  for (const auto &[rank, number] : exchanges)
    rank->watch();
}

bool Context::isDone(const Event &event) {
  if (!event.recorded)
    return true;
  makeCurrent(*event.device);
  int status = driver_.eventQuery(event.recorded);
  if (status == kNotReady) {
    watchAll(event.exchanges);
    return false;
  }
  driver_.check(status, text(*event.device));
  passAll(event.exchanges);
  return true;
}

void Context::synchronize(const Event &event) {
  if (!event.recorded)
    return;
  if (!event.exchanges.empty()) {
    while (!isDone(event))
      std::this_thread::sleep_for(kWatchPause);
    return;
  }
  makeCurrent(*event.device);
  driver_.check(driver_.eventSynchronize(event.recorded), text(*event.device));
}

void Context::synchronize(Queue &queue) {
  checkCapturesNot(queue, "be waited for");
  if (!queue.exchanges.empty()) {
    Event end;
    record(queue, end);
    queue.exchanges.clear();
    try {
      synchronize(end);
    } catch (const Error &) {
      remove(end);
      throw;
    }
    remove(end);
  }
  makeCurrent(*queue.device);
  driver_.check(driver_.streamSynchronize(queue.stream), text(*queue.device));
}

/// The host function that writes a signal. The device cannot: the memory belongs to another backend, and the driver
/// writes only to its own allocations.
static void give(void *data) {
  Signal &signal = *static_cast<Signal *>(data);
  std::atomic_ref(*signal.place).store(signal.number);
  signal.isGiven = true;
}

void Context::signal(Queue &queue, uint64_t *place, uint64_t number) {
  checkCapturesNot(queue, "signal");
  makeCurrent(*queue.device);
  while (!queue.signals.empty() && queue.signals.front()->isGiven)
    queue.signals.pop_front();
  queue.signals.push_back(std::make_unique<Signal>(place, number));
  driver_.check(driver_.hostFunction(queue.stream, give, queue.signals.back().get()),
                text(*queue.device) + ": a signal");
}

void Context::waitForSignal(const Queue &queue, const uint64_t *place, uint64_t number) {
  checkCapturesNot(queue, "wait for signals");
  if (!attribute(*queue.device, DeviceAttribute::WaitsForNumbers))
    throw Error(SLUICE_UNSUPPORTED, text(*queue.device) + ": its streams do not wait for numbers in memory");
  makeCurrent(*queue.device);
  driver_.check(
      driver_.streamWaitNumber(queue.stream, reinterpret_cast<DeviceAddress>(place), number, kWaitUntilNoLess),
      text(*queue.device) + ": waiting for a signal");
}

void Context::remove(const Event &event) {
  for (const auto &[kind, its] : event.events) {
    driver_.contextSetCurrent(kind.first->context);
    driver_.eventDestroy(its);
  }
}

} // namespace sluice::cuda
