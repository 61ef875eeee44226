// Every copy between memories that the runtime makes goes through here, and is counted here.
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

/// The copies from one device of the plan to another in one replica, whatever their reason.
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

/// Host memory that copies from one backend to another go through: given by one of them, if one gives any, whose copies are then
/// not staged once more.
class StagingBlock {
public:
  /// At least so many bytes, for a copy that `writer` puts there and `reader` takes away. The writer comes after the last such
  /// copy; where more bytes are asked for than before, the host waits for it.
  std::byte *take(size_t bytes, DeviceQueue &writer, DeviceQueue &reader);
  /// What is in the queue now reads it last.
  void lend(DeviceQueue &reader);

private:
  std::optional<CopiedHostMemory> memory_;
  size_t bytes_ = 0;
  DeviceEvent read_; ///< none where work is done at once
};

class CopyEngine {
public:
  CopyEngine(Devices &devices, WorkTimes &times) : devices_(devices), times_(times) {}

  /// Puts a copy into the plan's queue number `queue`; `work` is what it is noted as, without name, queue and bytes.
  void copy(size_t queue, const DeviceCopy &copy, Work work);

  const CopyCounts &counts() const { return counts_; }

private:
  void putCopy(DeviceQueue &queue, const DeviceCopy &copy);
  void putCopyOverHost(DeviceQueue &queue, const DeviceCopy &copy);
  void order(DeviceQueue &earlier, DeviceQueue &later);

  Devices &devices_;
  WorkTimes &times_;
  CopyCounts counts_;
  std::map<std::pair<DeviceContext *, DeviceContext *>, StagingBlock> staging_; ///< from one backend to another
  std::map<DeviceQueue *, DeviceEvent> ends_;                                   ///< of queues that others come after
};

} // namespace sluice::runtime
