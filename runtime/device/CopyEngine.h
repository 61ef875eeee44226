// Enqueues and counts all copies between memories.
#pragma once

#include "runtime/device/Devices.h"
#include "runtime/device/WorkTimes.h"
#include "runtime/plan/CopyCounts.h"

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <utility>

namespace sluice::runtime {

/// The copies from one device of the plan to another in one replica, summed over all reasons.
struct PairCount {
  size_t from = 0, to = 0;
  CopyCount count;
  int64_t replica = 0;
};

/// One copy of contiguous bytes.
struct DeviceCopy {
  const CopyKind &kind;
  const std::byte *from;
  std::byte *to;
  int64_t bytes;
  const std::string &label; ///< "relu_2, lenet.cpp:12:9"
};

/// Host memory for copies between backends. One of the two backends allocates it if possible; that backend then copies
/// without a second staging buffer.
class StagingBlock {
public:
  /// Returns a block of at least `bytes` bytes, which `writer` fills and `reader` reads. Later work of `writer` waits
  /// until the last use of the block is complete. If the block must grow, the host waits instead.
  std::byte *take(size_t bytes, DeviceQueue &writer, DeviceQueue &reader);
  /// Records the current end of `reader` as the end of the block's last use.
  void lend(DeviceQueue &reader);

private:
  std::optional<CopiedHostMemory> memory_;
  size_t bytes_ = 0;
  DeviceEvent read_; ///< end of the last use; none if readers are immediate
};

class CopyEngine {
public:
  CopyEngine(Devices &devices, WorkTimes &times) : devices_(devices), times_(times) {}

  /// Enqueues a copy in queue number `queue` of the plan. `work` is the trace record without name, queue and bytes.
  void copy(size_t queue, const DeviceCopy &copy, Work work);

  const CopyCounts &counts() const { return counts_; }

private:
  void putCopy(DeviceQueue &queue, const DeviceCopy &copy);
  void putCopyOverHost(DeviceQueue &queue, const DeviceCopy &copy);
  void order(DeviceQueue &earlier, DeviceQueue &later);

  Devices &devices_;
  WorkTimes &times_;
  CopyCounts counts_;
  std::map<std::pair<DeviceContext *, DeviceContext *>, StagingBlock> staging_; ///< by source and destination backend
  /// By queue, the event that `order` records in it for other queues; reused.
  std::map<DeviceQueue *, DeviceEvent> ends_;
};

} // namespace sluice::runtime
