// What the generators of CPU code need to know of the machine that the code is for.
//
// `instructions` and with them the width of vectors decide on orders of sums; all else is for speed alone, so that CPUs
// with one instruction set give the same bits, whatever their caches and ports. Nothing depends on the number of
// threads.
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
  int64_t fmaPorts = 2;  // vector multiply-adds that start in one cycle
  int64_t l1 = 32 << 10; // bytes, of one core
  int64_t l2 = 1 << 20;

  int64_t lanes(int64_t elementBits) const { return vectorBits / elementBits; }
  bool has(llvm::StringRef instruction) const;

  // The machine that this runs on.
  static Target host();

  // "native", or a processor by LLVM's name: "haswell". Caches to plan for may follow: "haswell:l1=32K,l2=256K"; else
  // they are this machine's where it is native, and those of a common core of that instruction set. The error's code is
  // not_supported for a processor that lacks what all code needs, invalid_argument for text that means nothing.
  static llvm::Expected<Target> of(llvm::StringRef text);
};

} // namespace sluice::cpu
