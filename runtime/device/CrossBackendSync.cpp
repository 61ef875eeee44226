#include "runtime/device/CrossBackendSync.h"

#include "runtime/base/Status.h"
#include "runtime/base/Text.h"

#include <algorithm>
#include <atomic>

namespace sluice::runtime {

//===- CrossingPath -----------------------------------------------------------------------------------------------===//

CrossingPath::CrossingPath(DeviceContext &from, int32_t device, DeviceContext &to)
    : from_(from), memory_(to, sizeof(uint64_t), concat("signals from ", from.backend(), " to ", to.backend())),
      queue_(from, device, SLUICE_QUEUE_COMMUNICATION, concat("signals to ", to.backend())) {}

std::optional<uint64_t> CrossingPath::cross(const DeviceEvent &event, DeviceQueue &reader, uint64_t serial) {
  if (isRefused_)
    return std::nullopt;
  auto *place = reinterpret_cast<uint64_t *>(memory_.data());
  queue_.wait(event);
  from_.check(from_.half().signal(queue_.get(), place, last_ + 1), from_.backend());
  sluice_status status = reader.context().half().wait_for_signal(reader.get(), place, ++last_);
  isRefused_ = status == SLUICE_UNSUPPORTED;
  if (isRefused_)
    return std::nullopt;
  reader.context().check(status, reader.context().backend());
  if (idle_.empty())
    idle_.emplace_back(from_);
  queue_.record(idle_.back());
  open_.push_back({last_, serial, std::move(idle_.back())});
  idle_.pop_back();
  return last_;
}

const DeviceEvent *CrossingPath::eventOf(uint64_t number) const {
  auto found = std::find_if(open_.begin(), open_.end(), [&](const Crossing &its) { return its.number == number; });
  return found == open_.end() ? nullptr : &found->event;
}

void CrossingPath::letGoUpTo(uint64_t number) {
  std::atomic_ref place(*reinterpret_cast<uint64_t *>(memory_.data()));
  if (place.load() < number)
    place.store(number);
}

void CrossingPath::endNext() {
  letGoUpTo(open_.front().number);
  idle_.push_back(std::move(open_.front().event));
  open_.pop_front();
}

sluice_status CrossingPath::finishNext() {
  sluice_status status = from_.synchronize(open_.front().event.get());
  if (status != SLUICE_DEADLINE)
    endNext();
  return status;
}

bool CrossingPath::tryNext() {
  int done = 0;
  sluice_status status = from_.half().query(open_.front().event.get(), &done);
  if (status != SLUICE_OK || done)
    endNext();
  from_.check(status, from_.backend());
  return done != 0;
}

void CrossingPath::letGo() {
  letGoUpTo(last_);
  open_.clear();
}

//===- CrossBackendSync -------------------------------------------------------------------------------------------===//

bool CrossBackendSync::cross(const DeviceEvent &event, DeviceQueue &reader) {
  DeviceContext &from = event.context(), &to = reader.context();
  // A lazy source progresses only inside its calls. A target that is not lazy could wait for it inside a call of the
  // target, and then nothing would advance the source.
  if (!from.half().signal || !to.half().wait_for_signal || (from.isLazy() && !to.isLazy()))
    return false;
  std::unique_ptr<CrossingPath> &path = paths_[{&from, &to}];
  if (!path)
    path = std::make_unique<CrossingPath>(from, event.device(), to);
  std::optional<uint64_t> number = path->cross(event, reader, made_++);
  if (!number)
    return false;
  CrossedPaths crossed = path->eventOf(*number)->crossed();
  // If the source's work itself came from the target backend, an event of the target backend records this order.
  for (auto [other, itsNumber] : crossed)
    if (const DeviceEvent *own = &other->from() == &to ? other->eventOf(itsNumber) : nullptr)
      reader.wait(*own);
  crossed[path.get()] = *number;
  reader.comeAfter(crossed);
  return true;
}

void CrossBackendSync::settle() noexcept {
  guarded([&] {
    CrossedPaths all;
    for (auto &[ends, path] : paths_)
      all[path.get()] = path->lastNumber();
    finish(all);
  });
  for (auto &[ends, path] : paths_)
    path->letGo();
}

//===- crossings before a position --------------------------------------------------------------------------------===//

/// The path of the oldest unfinished crossing; null if all are finished.
static CrossingPath *firstOpen(const CrossedPaths &crossed) {
  CrossingPath *first = nullptr;
  for (auto [path, number] : crossed)
    if (!path->isFinished(number) && (!first || path->nextSerial() < first->nextSerial()))
      first = path;
  return first;
}

void finish(const CrossedPaths &crossed) {
  Status first;
  while (CrossingPath *next = firstOpen(crossed)) {
    sluice_status status = next->finishNext();
    Status its = guarded([&] { next->from().check(status, next->from().backend()); });
    if (first.ok())
      first = its;
    if (status == SLUICE_DEADLINE)
      break;
  }
  if (!first.ok())
    throw Error(first.code, first.message);
}

bool areDone(const CrossedPaths &crossed) {
  while (CrossingPath *next = firstOpen(crossed))
    if (!next->tryNext())
      return false;
  return true;
}

void join(CrossedPaths &crossed, const CrossedPaths &others) {
  std::erase_if(crossed, [](const auto &item) { return item.first->isFinished(item.second); });
  for (auto [path, number] : others)
    if (!path->isFinished(number))
      crossed[path] = std::max(crossed[path], number);
}

} // namespace sluice::runtime
