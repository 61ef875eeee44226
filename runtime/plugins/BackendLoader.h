// Finds and loads backends: shared objects that export sluice_backend_query (sluice/backend/backend.h).
//
// A shared object may contain any code, so a child process tries each one first: loads it, queries its tables, and
// opens each half. A file that crashes, hangs or returns invalid tables is rejected with a reason and does not affect
// this process.
#pragma once

#include "sluice/backend/compile.h"
#include "sluice/backend/run.h"

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace sluice::runtime {

/// A run half's description of one of its devices; 0 for unknown values.
struct BackendDevice {
  std::string name;
  int64_t memoryBytes = 0, freeBytes = 0, cores = 0;
  double clockHz = 0, peakFlops = 0, memoryBandwidth = 0; ///< hertz, FLOP/s, bytes per second
  double linkBandwidth = 0, linkLatency = 0;              ///< of the link to the host: bytes per second, seconds
  int64_t computeMajor = 0, computeMinor = 0;             ///< architecture version; 0: none
  std::vector<int64_t> peers{}; ///< devices of its backend that it copies to directly, not over the host
};

/// A shared object and the result of its trial.
struct BackendFile {
  std::string path;
  std::string reason; ///< reason for its rejection; empty if accepted

  std::string name, description;
  int64_t majorVersion = 0, minorVersion = 0;
  bool hasCompile = false, hasRun = false;
  std::string compileReason; ///< reason why its compile half rejects this machine's target; empty if accepted
  std::string runReason;     ///< reason why its run half does not open here; empty if it opens
  std::vector<BackendDevice> devices;
  bool takesHostQueues = false; ///< it also runs the host's queues, so that its clock times the host's work

  bool accepted() const { return reason.empty(); }
};

struct BackendTrial {
  std::chrono::milliseconds limit{5000}; ///< per shared object
  /// Services for compile halves. Null: compile halves are not opened.
  const sluice_compile_services *services = nullptr;
};

/// The folders of SLUICE_BACKEND_PATH (separated by colons), then `installed` if it is not empty.
std::vector<std::string> backendFolders(const std::string &installed);

/// Tries one shared object in a child process.
BackendFile tryBackend(const std::string &path, const BackendTrial &trial = {});

/// Tries every `*.so` of the folders except transports, in folder order, then by name. A second compile or run half of
/// the same name is rejected, as is a missing folder.
std::vector<BackendFile> tryBackends(const std::vector<std::string> &folders, const BackendTrial &trial = {});

/// Loads an accepted shared object into this process permanently. Throws an input error if loading fails.
const sluice_backend &loadBackend(const std::string &path);

/// The run half called `name` from the first shared object of the folders that has it. If none has it, throws an
/// unsupported error that lists the rejected files with their reasons.
const sluice_backend_run &findRunHalf(const std::string &name, const std::vector<std::string> &folders);

/// The same for compile halves.
const sluice_backend_compile &findCompileHalf(const std::string &name, const std::vector<std::string> &folders,
                                              const sluice_compile_services &services);

} // namespace sluice::runtime
