// Every copy between memories that the runtime makes goes through here, and is counted here.
#ifndef SLUICE_RUNTIME_COPYENGINE_H
#define SLUICE_RUNTIME_COPYENGINE_H

#include "runtime/Devices.h"
#include "runtime/WorkTimes.h"

#include <compare>
#include <map>
#include <string>

namespace sluice::runtime {

struct CopyCount {
  int64_t copies = 0, bytes = 0;

  void add(int64_t moved) { *this += {1, moved}; }
  CopyCount &operator+=(const CopyCount &other) {
    copies += other.copies;
    bytes += other.bytes;
    return *this;
  }
  bool operator==(const CopyCount &) const = default;
};

/// The copies from one device of the plan to another, whatever their reason.
struct PairCount {
  size_t from = 0, to = 0;
  CopyCount count;
};

/// Between which devices of the plan, and why.
struct CopyKind {
  size_t from = 0, to = 0;
  std::string reason;

  auto operator<=>(const CopyKind &) const = default;
};

using CopyCounts = std::map<CopyKind, CopyCount>;

/// The sums over all reasons, by pair of devices.
std::map<std::pair<size_t, size_t>, CopyCount> byPair(const CopyCounts &counts);

/// One copy of contiguous bytes.
struct DeviceCopy {
  const CopyKind &kind;
  const std::byte *from;
  std::byte *to;
  int64_t bytes;
  const std::string &label; ///< "relu_2, lenet.cpp:12:9"
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
  std::vector<std::byte> staging_; ///< between two backends that do not know each other
};

} // namespace sluice::runtime

#endif
