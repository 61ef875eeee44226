// Measures what devices reach, kernel by kernel, and their links.
#pragma once

#include "tools/compiler/placement/costs/Calibration.h"
#include <functional>

namespace sluice::compiler {

struct MeasureRequest {
  std::string devices;             ///< as in `--devices`; empty: the host, and the first device of every backend
  std::vector<std::string> models; ///< files whose kernels are timed, too
  bool knowsOnlyThem = false;      ///< no kernels but those of `models`
  std::map<std::string, std::string> settings; ///< of backends: "link=1GB/s" for "sim"
  std::string clock;  ///< the only one to measure by, as "sim"; empty: all that the devices have
  int threads = 0;    ///< of the host; 0: all
  double seconds = 1; ///< for each model on each device
  std::function<void(const std::string &what)> progress;
  std::map<std::string, const sluice_backend_run *> runHalves; ///< used rather than what the plugins have, by name
};

/// One calibration for each clock that the devices have.
llvm::Expected<std::vector<ClockCalibration>> measureDevices(const MeasureRequest &request);

} // namespace sluice::compiler
