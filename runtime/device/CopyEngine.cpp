#include "runtime/device/CopyEngine.h"

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

/// Backends cannot reach each other's memory: the bytes go through the host, which waits for them. `queue` belongs to
/// one end; the other end's part is done in a queue of its own.
void CopyEngine::putCopyOverHost(DeviceQueue &queue, const DeviceCopy &copy) {
  DeviceQueue *out = &queue, *in = &queue;
  if (&queue.context() == &devices_.context(copy.kind.to))
    out = &devices_.queue(devices_.queueOutOf(copy.kind.from));
  else
    in = &devices_.queue(devices_.queueInto(copy.kind.to));
  staging_.resize(static_cast<size_t>(copy.bytes));
  queue.synchronize(); // what the copy waits for
  putCopy(*out, {{copy.kind.from, 0, copy.kind.reason}, copy.from, staging_.data(), copy.bytes, copy.label});
  out->synchronize();
  putCopy(*in, {{0, copy.kind.to, copy.kind.reason}, staging_.data(), copy.to, copy.bytes, copy.label});
  in->synchronize();
}

} // namespace sluice::runtime
