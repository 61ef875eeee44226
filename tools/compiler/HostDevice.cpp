#include "tools/compiler/HostDevice.h"

#include "runtime/Parallel.h"
#include <fstream>
#include <sstream>

namespace sluice::compiler {

/// The number behind `key` in a file of lines such as "MemTotal:   24110492 kB"; 0 if there is none.
static double numberAfter(const char *file, const std::string &key) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with(key))
      continue;
    double number = 0;
    std::istringstream(line.substr(line.find(':') + 1)) >> number;
    return number;
  }
  return 0;
}

/// The highest clock in Hz, or the present one where the system does not tell.
static double clockHz() {
  double kHz = 0;
  std::ifstream("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq") >> kHz;
  return kHz > 0 ? kHz * 1e3 : numberAfter("/proc/cpuinfo", "cpu MHz") * 1e6;
}

runtime::BackendDevice describeHost(const std::string &name, unsigned vectorBits) {
  runtime::BackendDevice host;
  host.name = name;
  host.memoryBytes = int64_t(numberAfter("/proc/meminfo", "MemTotal:") * 1024);
  host.freeBytes = int64_t(numberAfter("/proc/meminfo", "MemAvailable:") * 1024);
  host.cores = runtime::availableThreads();
  host.clockHz = clockHz();
  constexpr double kFlopsPerLane = 2 * 2; // two ports, a multiplication and an addition each
  host.peakFlops = double(host.cores) * host.clockHz * (vectorBits / 32) * kFlopsPerLane;
  return host;
}

} // namespace sluice::compiler
