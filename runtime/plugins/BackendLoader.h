// Finding and loading backends: shared objects that export sluice_backend_query (sluice/backend/backend.h).
//
// A shared object may be anything, so each is tried in a child process first: loaded, asked for its tables, and each
// half opened. What crashes, hangs or lies there is refused with a reason and harms nobody.
#pragma once

#include "sluice/backend/compile.h"
#include "sluice/backend/run.h"

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace sluice::runtime {

/// What a run half says of one of its devices; 0 where it does not know.
struct BackendDevice {
  std::string name;
  int64_t memoryBytes = 0, freeBytes = 0, cores = 0;
  double clockHz = 0, peakFlops = 0, memoryBandwidth = 0;
  double linkBandwidth = 0, linkLatency = 0;  ///< from and to the host: bytes a second, seconds
  int64_t computeMajor = 0, computeMinor = 0; ///< the architecture's version; 0: none
  std::vector<int64_t> peers{};               ///< devices of its backend to which copies do not go through the host
};

/// A shared object, and what came of trying it.
struct BackendFile {
  std::string path;
  std::string reason; ///< why it is refused; empty if it is not

  std::string name, description;
  int64_t majorVersion = 0, minorVersion = 0;
  bool hasCompile = false, hasRun = false;
  std::string compileReason; ///< why its compile half refuses this machine's target; empty if it takes it
  std::string runReason;     ///< why its run half does not open here; empty if it does
  std::vector<BackendDevice> devices;
  bool takesHostQueues = false; ///< its clock is that of a program's work on the host, too

  bool accepted() const { return reason.empty(); }
};

struct BackendTrial {
  std::chrono::milliseconds limit{5000};             ///< for one shared object
  const sluice_compile_services *services = nullptr; ///< for compile halves, which are not opened without
};

/// The folders of SLUICE_BACKEND_PATH (separated by colons), then `installed` if it is not empty.
std::vector<std::string> backendFolders(const std::string &installed);

/// Tries one shared object in a child process.
BackendFile tryBackend(const std::string &path, const BackendTrial &trial = {});

/// Tries every `*.so` of the folders that is no transport, in their order and then by name. A second compile or run half of one name is
/// refused, and so is a folder that is not there.
std::vector<BackendFile> tryBackends(const std::vector<std::string> &folders, const BackendTrial &trial = {});

/// Loads a shared object that was accepted into this process, for good. Throws if it cannot be loaded after all.
const sluice_backend &loadBackend(const std::string &path);

/// The run half called `name` from the first shared object of the folders that has it. Throws an unsupported error that
/// lists what was refused and why.
const sluice_backend_run &findRunHalf(const std::string &name, const std::vector<std::string> &folders);

/// The same for compile halves.
const sluice_backend_compile &findCompileHalf(const std::string &name, const std::vector<std::string> &folders,
                                              const sluice_compile_services &services);

} // namespace sluice::runtime
