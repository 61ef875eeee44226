// Compares a compiled model with the reference interpreter, kernel by kernel. It checks the actual plan, in which
// values share memory.
#pragma once

#include "runtime/instance/Instance.h"
#include "tools/compiler/Compiler.h"
#include <optional>

namespace sluice::compiler {

struct VerifyOptions {
  CompileOptions compile;
  int64_t rows = 4;  // of the batch, at most the capacity
  uint64_t seed = 0; // of the inputs and of `init`
  double zeros = 0;  // the share of exact zeros in the elements of float inputs
  double nans = 0;   // share of NaNs
};

/// A kernel result that differs from the reference for the same operands; or an output or state that differs from the
/// result of its kernel.
struct Difference {
  std::string entry, kernel, place; // no kernel for an output or a state
  std::string value;                // the output's or state's name
  std::vector<std::string> ops;     // of the kernel
  unsigned result = 0;              // index among the kernel's results
  std::vector<int64_t> index;       // of the element with the largest error
  double actual = 0, expected = 0;
  double error = 0, tolerance = 0; // relative to the element's magnitude, at least the result's largest value
};

struct Verification {
  std::vector<std::string> entries;
  int64_t launches = 0; // number compared
  double largestError = 0;
  std::optional<Difference> first; // in the order of execution
};

/// Compares `instance` with the reference interpreter on `module`, which is in phase `lowered`. The instance has the
/// same entry points, kernels and values. Fails if the interpreter or the runtime fails; a difference is a result.
llvm::Expected<Verification> compareWithReference(mlir::ModuleOp module, runtime::Instance &instance,
                                                  const VerifyOptions &options);

/// Compiles the model in a file and compares it.
llvm::Expected<Verification> verifyFile(llvm::StringRef path, const VerifyOptions &options);

} // namespace sluice::compiler
