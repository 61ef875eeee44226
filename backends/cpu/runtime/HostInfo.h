// Properties of the host machine, from the operating system.
#pragma once

#include <cstdint>
#include <string>

namespace sluice::cpu {

/// Unknown values are 0.
struct HostInfo {
  std::string name; // "AMD EPYC 9R45"
  int64_t memoryBytes = 0, freeBytes = 0;
  int32_t cores = 0; // that this process may run on
  double clockHz = 0;
  double peakFlops = 0; // f32, two vector multiply-adds a cycle and core
};

HostInfo readHostInfo();

/// Memory that this process can still allocate, swap included, limited to the physical memory. The kernel overcommits,
/// and kills a process that uses more.
int64_t readFreeBytes();

} // namespace sluice::cpu
