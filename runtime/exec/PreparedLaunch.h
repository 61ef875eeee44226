// A launch with all that does not change from call to call worked out.
#ifndef SLUICE_RUNTIME_PREPAREDLAUNCH_H
#define SLUICE_RUNTIME_PREPAREDLAUNCH_H

#include "runtime/device/Devices.h"

#include <array>
#include <vector>

namespace sluice::runtime {

class PreparedLaunch {
public:
  /// All arguments must outlive this.
  PreparedLaunch(const Launch &launch, const Plan &plan, const sluice_artifact &artifact, const Devices &devices);
  PreparedLaunch(PreparedLaunch &&) = default;
  PreparedLaunch &operator=(PreparedLaunch &&) = default;

  const std::string &name() const { return *name_; }
  /// What a queue is given for call number `call`; valid until this is next asked.
  const sluice_launch &forCall(int64_t call, int64_t rows) {
    if (rows != rows_)
      setRows(rows);
    return launches_[static_cast<size_t>(call & 1)];
  }

private:
  void setRows(int64_t rows);

  const std::string *name_;
  const Kernel *kernel_;
  std::vector<sluice_launch_stage> stages_;
  std::array<std::vector<sluice_buffer>, 2> buffers_; ///< of even and of odd calls
  std::array<sluice_launch, 2> launches_;             ///< the same
  int64_t rows_ = -1;                                 ///< that stages and launches are for
};

/// A buffer of the plan in call number `call`, as backends know it.
sluice_buffer bufferFor(const Buffer &buffer, const Devices &devices, int64_t call);

} // namespace sluice::runtime

#endif
