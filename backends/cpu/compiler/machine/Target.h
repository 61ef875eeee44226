// The target machine of the generators of CPU code.
//
// `instructions`, and with them the vector width, determine the order of sums. The other fields affect speed only, so
// CPUs with one instruction set give bitwise equal results, independent of their caches and ports. Nothing depends on
// the number of threads.
#pragma once

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <cstdint>
#include <string>
#include <vector>

namespace sluice::cpu {

struct Target {
  std::string cpu;                       // LLVM's name of the processor that code is scheduled for
  std::vector<std::string> instructions; // LLVM's names of the extensions of x86-64 that the code may use
  int64_t vectorBits = 512;
  int64_t numVectorRegisters = 32;
  int64_t fmaPorts = 2;   // vector multiply-adds that start in one cycle
  int64_t fmaLatency = 4; // cycles from a multiply-add to its result
  int64_t issueWidth = 4; // instructions that start in one cycle
  int64_t l1 = 32 << 10;  // bytes, of one core
  int64_t l2 = 1 << 20;

  int64_t lanes(int64_t elementBits) const { return vectorBits / elementBits; }
  bool has(llvm::StringRef instruction) const;
  // Whether elements that are accessed once each come from beyond the second-level cache.
  bool isFar(int64_t bytes) const { return bytes > l2; }

  // The host machine.
  static Target host();

  // Parses "native" or a processor by LLVM's name: "haswell". Cache sizes for tiling may follow:
  // "haswell:l1=32K,l2=256K". Their default is this machine's caches for "native", and otherwise those of a common core
  // of that instruction set. The error's code is not_supported for a processor without a required extension, and
  // invalid_argument for text that does not parse.
  static llvm::Expected<Target> of(llvm::StringRef text);
};

} // namespace sluice::cpu
