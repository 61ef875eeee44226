// What the system tells of the machine that this runs on.
#pragma once

#include <cstdint>
#include <string>

namespace sluice::cpu {

/// What the system does not tell is 0.
struct HostInfo {
  std::string name; // "AMD EPYC 9R45"
  int64_t memoryBytes = 0, freeBytes = 0;
  int32_t cores = 0; // that this process may run on
  double clockHz = 0;
  double peakFlops = 0; // f32, two vector multiply-adds a cycle and core
};

HostInfo readHostInfo();

/// What a process can still have, swap included, but no more than the memory: the kernel promises more, and kills who
/// uses it.
int64_t readFreeBytes();

} // namespace sluice::cpu
