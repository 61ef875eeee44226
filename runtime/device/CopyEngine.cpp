#include "runtime/device/CopyEngine.h"

#include "runtime/base/Text.h"

#include <algorithm>

namespace sluice::runtime {

void CopyEngine::copy(size_t queue, const DeviceCopy &copy, Work work) {
  DeviceQueue &there = devices_.queue(queue);
  bool meet =
      copy.kind.from == 0 || copy.kind.to == 0 || &devices_.context(copy.kind.from) == &devices_.context(copy.kind.to);
  auto put = [&] { meet ? putCopy(there, copy) : putCopyOverHost(there, copy); };
  if (!times_.wants(work.call))
    return put();
  work.name = copy.label;
  work.queue = queue;
  work.bytes = copy.bytes;
  times_.note(std::move(work), there, put);
}

void CopyEngine::putCopy(DeviceQueue &queue, const DeviceCopy &copy) {
  queue.copy({sizeof(sluice_copy), devices_.ordinal(copy.kind.from), devices_.ordinal(copy.kind.to), copy.from, copy.to,
              static_cast<size_t>(copy.bytes), copy.label.c_str()});
  counts_[copy.kind].add(copy.bytes);
}

std::byte *StagingBlock::take(size_t bytes, DeviceQueue &writer, DeviceQueue &reader) {
  if (memory_ && bytes <= bytes_) {
    writer.wait(read_);
    return memory_->data();
  }
  if (read_)
    read_.synchronize();
  DeviceContext &from = writer.context(), &to = reader.context();
  bytes_ = 0; // in case the allocation fails
  memory_.reset();
  memory_.emplace(CopiedHostMemory::isGivenBy(from) ? from : to, std::max<size_t>(bytes, 1),
                  concat(bytes, " bytes of the host between ", from.backend(), " and ", to.backend()));
  bytes_ = bytes;
  return memory_->data();
}

void StagingBlock::lend(DeviceQueue &reader) {
  if (reader.isImmediate())
    return;
  if (!read_)
    read_ = DeviceEvent(reader.context());
  reader.record(read_);
}

/// Orders all later work of `later` after the current work of `earlier`.
void CopyEngine::order(DeviceQueue &earlier, DeviceQueue &later) {
  if (&earlier == &later || earlier.isImmediate())
    return;
  DeviceEvent &end = ends_.try_emplace(&earlier, earlier.context()).first->second;
  earlier.record(end);
  later.wait(end);
}

/// Copies between two backends. They cannot access each other's memory, so the bytes pass through host memory: one copy
/// out of the source, one into the destination. `queue` belongs to one end; the copy at the other end runs in a queue
/// of that end. `queue` represents both: waiting for `queue` waits for both copies.
void CopyEngine::putCopyOverHost(DeviceQueue &queue, const DeviceCopy &copy) {
  DeviceQueue *out = &queue, *in = &queue;
  if (&queue.context() == &devices_.context(copy.kind.to))
    out = &devices_.queue(devices_.queueOutOf(copy.kind.from));
  else
    in = &devices_.queue(devices_.queueInto(copy.kind.to));
  order(queue, *out); // dependencies of the copy
  StagingBlock &staging = staging_[{&out->context(), &in->context()}];
  std::byte *between = staging.take(static_cast<size_t>(copy.bytes), *out, *in);
  putCopy(*out, {{copy.kind.from, 0, copy.kind.reason}, copy.from, between, copy.bytes, copy.label});
  order(*out, *in);
  putCopy(*in, {{0, copy.kind.to, copy.kind.reason}, between, copy.to, copy.bytes, copy.label});
  staging.lend(*in);
  order(*in, queue);
}

} // namespace sluice::runtime
