// The target machine of the generators of CPU code.
//
// `instructions`, and with them the vector width, determine the order of sums. The other fields affect speed only, so
// CPUs with one instruction set give bitwise equal results, independent of their caches and ports. Nothing depends on
// the number of threads. With `fastMath`, caches and ports also decide which convolutions use Winograd's algorithm.
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
  bool fastMath = false; // whether sums of f32 may be computed by other formulas, as with --math fast

  int64_t lanes(int64_t elementBits) const { return vectorBits / elementBits; }
  bool has(llvm::StringRef instruction) const;
  // Whether elements that are accessed once each come from beyond the second-level cache.
  bool isFar(int64_t bytes) const { return bytes > l2; }
  // Whether consecutive tasks should read the same part of the weights and different rows, instead of the reverse. A
  // thread runs consecutive tasks. It reads the operand of the inner dimension again for each part of the other one,
  // unless all of the operand stays in the second-level cache. Reading weights once must halve the bytes, because a
  // thread then no longer reads the rows that it wrote in the previous stage.
  bool prefersRowsInner(int64_t rowBytes, int64_t rowTasks, int64_t weightBytes, int64_t weightTasks) const {
    auto bytes = [&](int64_t outer, int64_t inner, int64_t outerTasks) {
      return outer + (inner <= l2 / 2 ? inner : inner * outerTasks);
    };
    return 2 * bytes(weightBytes, rowBytes, weightTasks) <= bytes(rowBytes, weightBytes, rowTasks);
  }

  // The host machine.
  static Target host();

  // Parses "native" or a processor by LLVM's name: "haswell". Cache sizes for tiling may follow:
  // "haswell:l1=32K,l2=256K". Their default is this machine's caches for "native", and otherwise those of a common core
  // of that instruction set. The error's code is not_supported for a processor without a required extension, and
  // invalid_argument for text that does not parse.
  static llvm::Expected<Target> of(llvm::StringRef text);
};

} // namespace sluice::cpu
