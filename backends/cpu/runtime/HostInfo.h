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
  double peakFlops = 0; // f32 operations per second of all cores, at two vector multiply-adds per cycle
};

HostInfo readHostInfo();

/// Bytes that this process can still use, including swap, but at most the physical memory. Allocations beyond this
/// limit may succeed, because the kernel overcommits, but the kernel kills a process that uses them.
int64_t readFreeBytes();

} // namespace sluice::cpu
