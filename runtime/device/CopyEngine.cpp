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

std::byte *StagingBlock::take(size_t bytes, DeviceContext &from, DeviceContext &to) {
  if (read_)
    read_.synchronize();
  DeviceContext &giver = CopiedHostMemory::isGivenBy(from) ? from : to;
  if (bytes > bytes_ || &giver != giver_) {
    bytes_ = 0; // if there is no more to be had
    memory_.reset();
    memory_.emplace(giver, std::max<size_t>(bytes, 1),
                    concat(bytes, " bytes of the host between ", from.backend(), " and ", to.backend()));
    giver_ = &giver;
    bytes_ = bytes;
  }
  return memory_->data();
}

void StagingBlock::lend(DeviceQueue &reader) {
  if (!read_ || &read_.context() != &reader.context())
    read_ = DeviceEvent(reader.context());
  reader.record(read_);
}

/// Backends cannot reach each other's memory: the bytes go through the host, which waits for them. `queue` belongs to
/// one end; the other end's part is done in a queue of its own. The queue stands for the copy: what waits for it waits
/// for both parts.
void CopyEngine::putCopyOverHost(DeviceQueue &queue, const DeviceCopy &copy) {
  DeviceQueue *out = &queue, *in = &queue;
  if (&queue.context() == &devices_.context(copy.kind.to))
    out = &devices_.queue(devices_.queueOutOf(copy.kind.from));
  else
    in = &devices_.queue(devices_.queueInto(copy.kind.to));
  if (out != &queue)
    queue.synchronize(); // what the copy waits for
  std::byte *staging = staging_.take(static_cast<size_t>(copy.bytes), out->context(), in->context());
  putCopy(*out, {{copy.kind.from, 0, copy.kind.reason}, copy.from, staging, copy.bytes, copy.label});
  out->synchronize();
  putCopy(*in, {{0, copy.kind.to, copy.kind.reason}, staging, copy.to, copy.bytes, copy.label});
  staging_.lend(*in);
  if (in != &queue)
    in->synchronize();
}

} // namespace sluice::runtime
