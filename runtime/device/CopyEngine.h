// Every copy between memories that the runtime makes goes through here, and is counted here.
#pragma once

#include "runtime/device/Devices.h"
#include "runtime/exec/WorkTimes.h"
#include "runtime/plan/CopyCounts.h"

#include <cstddef>
#include <optional>
#include <string>

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

/// Host memory that copies between two backends go through: given by one of them, if one gives any, whose copies are then not
/// staged once more.
class StagingBlock {
public:
  /// At least so many bytes, which no copy uses any more: the host waits for the last that did. `from` and `to` are the
  /// backends that reach the memory next.
  std::byte *take(size_t bytes, DeviceContext &from, DeviceContext &to);
  /// What is in the queue now reads it last.
  void lend(DeviceQueue &reader);

private:
  std::optional<CopiedHostMemory> memory_;
  DeviceContext *giver_ = nullptr; ///< for whose copies it is
  size_t bytes_ = 0;
  DeviceEvent read_;
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

  Devices &devices_;
  WorkTimes &times_;
  CopyCounts counts_;
  StagingBlock staging_; ///< between two backends that do not know each other
};

} // namespace sluice::runtime
