#include "runtime/arrays/Stream.h"

#include "runtime/arrays/ArrayDevices.h"
#include "runtime/base/Status.h"
#include "runtime/base/Text.h"

namespace sluice::runtime {

/// The limit of recorded work; above it, the host waits for the oldest.
static constexpr size_t mostPending = 256;

Stream &ThreadContext::stream(ArrayDevice &device) {
  std::unique_ptr<Stream> &stream = streams_[device.ordinal()];
  if (!stream)
    stream = std::make_unique<Stream>(*this, device);
  return *stream;
}

Stream::Stream(ThreadContext &owner, ArrayDevice &device)
    : owner_(&owner), device_(&device),
      queue_(owner.context(), device.ordinal(), SLUICE_QUEUE_COMPUTE, concat(device.text(), ": arrays")) {}

DeviceEvent Stream::freshEvent() {
  {
    std::lock_guard lock(mutex_);
    if (!unused_.empty()) {
      DeviceEvent event = std::move(unused_.back());
      unused_.pop_back();
      return event;
    }
  }
  return DeviceEvent(owner_->context());
}

void Stream::recycle(DeviceEvent event) {
  std::lock_guard lock(mutex_);
  unused_.push_back(std::move(event));
}

WorkPointer Stream::record(const CallSite &site) {
  if (isImmediate()) {
    kept_.clear();
    return nullptr;
  }
  if (pending_.size() >= mostPending)
    finishOldest();
  DeviceEvent event = freshEvent();
  queue_.record(event);
  auto work = std::make_shared<CallWork>(*this, site, std::move(event));
  pending_.push_back({work, std::exchange(kept_, {})});
  return work;
}

/// After a failure, all enqueued work fails with the same error, because its results are undefined.
void Stream::finishOldest() {
  Recorded oldest = std::move(pending_.front());
  pending_.pop_front();
  Status status = guarded([&] { oldest.work->event().synchronize(); });
  if (status.ok())
    return oldest.work->end(nullptr);
  auto failure = std::make_shared<const WorkFailure>(
      WorkFailure{status.code, concat(oldest.work->site().text(), " on ", device_->text(), ": ", status.message)});
  oldest.work->end(failure);
  guarded([&] { queue_.synchronize(); });
  for (Recorded &later : std::exchange(pending_, {}))
    later.work->end(failure);
}

void Stream::waitFor(const WorkPointer &work) {
  if (!work || &work->stream() == this)
    return work ? work->checkIfDone() : void();
  DeviceContext &context = owner_->context();
  bool isSameBackend = &work->stream().owner().backend() == &owner_->backend();
  if (isImmediate() || !isSameBackend)
    return synchronize(work);
  if (!work->isDone()) { // any context of the group may wait for an event of the group
    context.checkWork(context.half().wait(queue_.get(), work->event().get()));
    return;
  }
  work->checkIfDone();
  if (context.half().acquire) // another thread waited on its host; this context must still acquire the result
    context.check(context.half().acquire(context.get()), context.backend());
}

void Stream::synchronize(const WorkPointer &work) {
  if (!work || work->isDone())
    return work ? work->checkIfDone() : void();
  Stream &its = work->stream();
  if (ArrayDevices::isOfThread(*its.owner_)) {
    while (!work->isDone())
      its.finishOldest();
    return work->checkIfDone();
  }
  // Only the owner may finish its stream: wait in the queue of this thread instead.
  Stream &mine = its.device_->streamOfThread();
  if (&mine.owner_->backend() != &its.owner_->backend())
    failExhausted(concat(work->site().text(), " on ", its.device_->text(), ": the device was lost"));
  mine.waitFor(work);
  mine.finish(work->site());
}

void Stream::finish(const CallSite &site) {
  if (isImmediate())
    return;
  WorkPointer end = record(site);
  while (!end->isDone())
    finishOldest();
  end->checkIfDone();
}

} // namespace sluice::runtime
