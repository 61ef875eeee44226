// What the generators of CPU code need to know of the machine that the code is for.
//
// Tile sizes, tasks and the order of sums depend on shapes and on this, never on the number of threads.
#ifndef SLUICE_BACKENDS_CPU_COMPILER_TARGET_H
#define SLUICE_BACKENDS_CPU_COMPILER_TARGET_H

#include <cstdint>
#include <string>

namespace sluice::cpu {

struct Target {
  std::string cpu = "x86-64-v4"; // LLVM's name of the processor
  std::string features;          // LLVM's feature string, "+avx2,-avx512f"; empty: those of `cpu`
  int64_t vectorBits = 512;
  int64_t numVectorRegisters = 32;
  int64_t fmaPorts = 2;  // vector multiply-adds that start in one cycle
  int64_t l1 = 32 << 10; // bytes, of one core
  int64_t l2 = 1 << 20;

  int64_t lanes(int64_t elementBits) const { return vectorBits / elementBits; }

  // The machine that this runs on.
  static Target host();
};

} // namespace sluice::cpu

#endif
