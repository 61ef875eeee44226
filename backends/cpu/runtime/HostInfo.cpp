#include "backends/cpu/runtime/HostInfo.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sched.h>

namespace sluice::cpu {

/// The text after `key` and a colon in a file of lines such as "MemTotal: 24110492 kB"; empty if no line has the key.
static std::string textAfter(const char *file, const std::string &key) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    size_t colon = line.find(':');
    if (!line.starts_with(key) || colon == std::string::npos)
      continue;
    size_t begin = line.find_first_not_of(" \t", colon + 1);
    return begin == std::string::npos ? "" : line.substr(begin);
  }
  return "";
}

static double numberAfter(const char *file, const std::string &key) {
  return std::strtod(textAfter(file, key).c_str(), nullptr);
}

/// The highest clock, or the present one if unknown.
static double readClockHz() {
  double kHz = 0;
  std::ifstream("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq") >> kHz;
  return kHz > 0 ? kHz * 1e3 : numberAfter("/proc/cpuinfo", "cpu MHz") * 1e6;
}

static int32_t countCores() {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 0;
}

/// f32 operations per core and cycle.
static double flopsPerCycle() {
  int lanes = 4;
#if defined(__x86_64__)
  lanes = __builtin_cpu_supports("avx512f") ? 16 : __builtin_cpu_supports("avx2") ? 8 : 4;
#endif
  constexpr int kPorts = 2, kFlopsOfMultiplyAdd = 2;
  return lanes * kPorts * kFlopsOfMultiplyAdd;
}

int64_t readFreeBytes() {
  const char *file = "/proc/meminfo";
  double kB =
      std::min(numberAfter(file, "MemAvailable") + numberAfter(file, "SwapFree"), numberAfter(file, "MemTotal"));
  return static_cast<int64_t>(kB * 1024);
}

HostInfo readHostInfo() {
  HostInfo host;
  host.name = textAfter("/proc/cpuinfo", "model name");
  host.memoryBytes = static_cast<int64_t>(numberAfter("/proc/meminfo", "MemTotal") * 1024);
  host.freeBytes = readFreeBytes();
  host.cores = countCores();
  host.clockHz = readClockHz();
  host.peakFlops = host.cores * host.clockHz * flopsPerCycle();
  return host;
}

} // namespace sluice::cpu
