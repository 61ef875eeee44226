#include "backends/cuda/runtime/AlgorithmTiming.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace sluice::cuda {

static constexpr int kTimedCalls = 3;

BlasAlgorithm FastestAlgorithms::find(const std::string &product, const std::function<BlasAlgorithm()> &choose) {
  std::lock_guard lock(mutex);
  auto known = chosen.find(product);
  if (known == chosen.end())
    known = chosen.emplace(product, choose()).first;
  return known->second;
}

ScratchMemory::ScratchMemory(const TimingPlace &where, size_t bytes) : where(where) {
  if (where.driver.allocate(&address, bytes) != 0)
    address = 0;
  else if (where.driver.fill(address, 0, bytes, where.stream) != 0)
    where.driver.release(std::exchange(address, 0));
}

ScratchMemory::~ScratchMemory() {
  if (address)
    where.driver.release(address);
}

StreamTimer::StreamTimer(const TimingPlace &where) : where(where) {
  for (DriverEvent *event : {&from, &to})
    if (where.driver.eventCreate(event, kEventWithTimes) != 0)
      *event = nullptr;
}

StreamTimer::~StreamTimer() {
  for (DriverEvent event : {from, to})
    if (event)
      where.driver.eventDestroy(event);
}

float StreamTimer::best(const std::function<int()> &put) const {
  constexpr float kNever = std::numeric_limits<float>::infinity();
  float best = kNever, milliseconds = 0;
  for (int call = 0; call <= kTimedCalls; ++call) {
    bool isDone = from && to && where.driver.eventRecord(from, where.stream) == 0 && put() == 0 &&
                  where.driver.eventRecord(to, where.stream) == 0 && where.driver.eventSynchronize(to) == 0 &&
                  where.driver.elapsed(&milliseconds, from, to) == 0;
    if (!isDone)
      return kNever;
    if (call > 0)
      best = std::min(best, milliseconds);
  }
  return best;
}

} // namespace sluice::cuda
