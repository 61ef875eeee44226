// A launch with all call-independent data resolved.
#pragma once

#include "runtime/device/Devices.h"

#include <vector>

namespace sluice::runtime {

/// Fields that a call reads are adjacent, because kernels evict the caches between two launches.
class PreparedLaunch {
public:
  /// All arguments must outlive this.
  PreparedLaunch(const Launch &launch, const Plan &plan, const sluice_artifact &artifact, const Devices &devices);
  PreparedLaunch(PreparedLaunch &&) = default;
  PreparedLaunch &operator=(PreparedLaunch &&) = default;

  const char *name() const { return launch_.name; }
  /// The launch for a call that uses copy `copy` of the buffers that exist once per call in flight. Valid until the
  /// next `forCall`, and while `call` lives.
  const sluice_launch &forCall(size_t copy, const sluice_call &call) {
    if (call.rows != rows_)
      setRows(call.rows);
    launch_.call = &call;
    launch_.addresses = addresses_.data() + copy * buffers_.size();
    return launch_;
  }

  /// From now on, reads the buffers at `slot` of the same launch at another address.
  void rebind(const Launch &launch, const Slot &slot, std::byte *address);

private:
  void setRows(int64_t rows);

  int64_t rows_ = -1; ///< rows that the cost and the stages' tasks are set for
  sluice_launch launch_{};
  std::vector<void *> addresses_; ///< buffer addresses: of the first copy, then of the second, and so on
  std::vector<sluice_launch_stage> stages_;
  std::vector<sluice_buffer> buffers_;
  const Kernel *kernel_;
};

} // namespace sluice::runtime
