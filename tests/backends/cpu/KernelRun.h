// Runs one kernel, given as text, as generated code.
#pragma once

#include "backends/cpu/compiler/KernelLowering.h"
#include "backends/cpu/compiler/llvm/Codegen.h"
#include "tests/backends/KernelCase.h"
#include <optional>

namespace sluice::cpu::testing {

class KernelRun : public test::KernelCase {
public:
  KernelRun(const std::vector<std::string> &operands, const std::string &body, const std::string &yields,
            int64_t capacity, const std::string &aliases = "", const Target &target = Target::host());

  bool lowered() const { return kernel.has_value(); }
  const LoweredKernel &result() const { return *kernel; }
  /// The kernel, lowered once more, to functions without bodies.
  LoweredKernel described();
  /// The stages as MLIR.
  const std::string &text() const { return functions; }
  /// Compiles the kernel once more: assembly takes as long as machine code, and few tests read it.
  std::string assembly();

  /// Runs all tasks of each stage, one by one, in an order that `seed` draws (0: in order, in one call).
  void run(int64_t rows, unsigned seed = 0);
  /// A time for one run, in seconds.
  double time(int64_t rows);

private:
  Target target;
  std::string functions;
  std::optional<LoweredKernel> kernel;
  std::optional<LoadedObject> object;
};

} // namespace sluice::cpu::testing
