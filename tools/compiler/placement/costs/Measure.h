// Measures the rates of devices, kernel by kernel, and their links.
#pragma once

#include "tools/compiler/placement/costs/Calibration.h"
#include <functional>

namespace sluice::compiler {

struct MeasureRequest {
  std::string devices;             ///< as in `--devices`; empty: the host, and the first device of every backend
  std::vector<std::string> models; ///< files whose kernels are also timed
  bool knowsOnlyThem = false;      ///< only kernels of `models`
  std::map<std::string, std::string> settings; ///< of backends: "link=1GB/s" for "sim"
  std::string clock;  ///< the only clock to use, such as "sim"; empty: all clocks of the devices
  int threads = 0;    ///< of the host; 0: all
  double seconds = 1; ///< per model and device
  std::function<void(const std::string &what)> progress;
  std::map<std::string, const sluice_backend_run *> runHalves; ///< replace the plugins' run halves, by name
};

/// One calibration for each clock of the devices.
llvm::Expected<std::vector<ClockCalibration>> measureDevices(const MeasureRequest &request);

} // namespace sluice::compiler
