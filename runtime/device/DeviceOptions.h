// Selection and settings of a plan's devices.
#pragma once

#include "runtime/base/Status.h"
#include "runtime/launch/ProcessGroup.h"
#include "sluice/backend/run.h"

#include <functional>
#include <map>
#include <string>

namespace sluice::runtime {

struct DeviceOptions {
  std::map<std::string, std::string> settings; ///< settings by backend: "seed=7" for "sim"
  std::string list;                            ///< devices for the plan's logical devices, as in bindDevices
  std::string folder;                          ///< folder of backends; searched after SLUICE_BACKEND_PATH
  std::map<std::string, const sluice_backend_run *> backends; ///< run halves by name, instead of those in the folders
  ProcessGroup *processes = nullptr; ///< processes of the other replicas; null: all replicas are in this process
  /// Seconds within which all replicas in this process must enter a collective, and within which the devices of
  /// exchanging replicas must complete work that the host waits for. 0: no limit.
  double deadline = 0;
  /// Called in a separate thread with the error of a late replica. It may end the process, because nothing else can end
  /// the replica's thread. Empty: the other replicas fail with the error, and the call waits for the late replica.
  std::function<void(const Error &)> onLate;
  bool replays = true; ///< captures and replays accelerator work if the backend supports this
};

} // namespace sluice::runtime
