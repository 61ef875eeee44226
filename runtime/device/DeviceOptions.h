// How the devices of a plan are chosen and set.
#pragma once

#include "runtime/launch/ProcessGroup.h"
#include "sluice/backend/run.h"

#include <map>
#include <string>

namespace sluice::runtime {

struct DeviceOptions {
  std::map<std::string, std::string> settings; ///< of backends, by name: "seed=7" for "sim"
  std::string list;                            ///< of the devices that fill the plan's slots, as in fillSlots
  std::string folder;                          ///< where backends lie, after those of SLUICE_BACKEND_PATH
  std::map<std::string, const sluice_backend_run *> backends; ///< by name: used rather than what the folders have
  ProcessGroup *processes = nullptr; ///< with the other replicas in them; null: all are in this process
  bool replays = true;               ///< work of accelerators is captured and replayed, where their backend can
};

} // namespace sluice::runtime
