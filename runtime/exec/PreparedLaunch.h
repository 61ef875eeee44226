// A launch with all that does not change from call to call worked out.
#pragma once

#include "runtime/device/Devices.h"

#include <vector>

namespace sluice::runtime {

/// What a call needs stands together: between two launches their kernels use the caches.
class PreparedLaunch {
public:
  /// All arguments must outlive this.
  PreparedLaunch(const Launch &launch, const Plan &plan, const sluice_artifact &artifact, const Devices &devices);
  PreparedLaunch(PreparedLaunch &&) = default;
  PreparedLaunch &operator=(PreparedLaunch &&) = default;

  const char *name() const { return launch_.name; }
  /// What a queue is given for a call that uses copy number `copy`; valid until this is next asked, and as long as
  /// `call` is.
  const sluice_launch &forCall(size_t copy, const sluice_call &call) {
    if (call.rows != rows_)
      setRows(call.rows);
    launch_.call = &call;
    launch_.addresses = addresses_.data() + copy * buffers_.size();
    return launch_;
  }

private:
  void setRows(int64_t rows);

  int64_t rows_ = -1; ///< that the launch and its stages are for
  sluice_launch launch_{};
  std::vector<void *> addresses_; ///< of the buffers in the first copy, in the second, and so on
  std::vector<sluice_launch_stage> stages_;
  std::vector<sluice_buffer> buffers_;
  const Kernel *kernel_;
};

} // namespace sluice::runtime
