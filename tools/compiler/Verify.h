// Compares what a compiled model computes with the reference interpreter, kernel by kernel: the very plan that is
// shipped, in which values share memory.
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
  double nans = 0;   // the share of NaNs in them
};

/// A kernel's result that is not what the reference gives for what the kernel had to read; or an output or state that
/// is not what the kernel that makes it left.
struct Difference {
  std::string entry, kernel, place; // no kernel: of an output or a state
  std::string value;                // the output's or state's name
  std::vector<std::string> ops;     // of the kernel
  unsigned result = 0;              // its number among the kernel's
  std::vector<int64_t> index;       // of the element that differs most
  double actual = 0, expected = 0;
  double error = 0, tolerance = 0; // relative to what the element is made of, at least the result's largest value
};

struct Verification {
  std::vector<std::string> entries;
  int64_t kernels = 0; // that were compared
  double largestError = 0;
  std::optional<Difference> first; // in the order of execution
};

/// Compares what `instance` computes with what the reference interpreter makes of `module`. The module is in phase
/// `lowered`; the instance has the same entry points, kernels and values. Fails when the interpreter or the runtime
/// does; a difference is a result.
llvm::Expected<Verification> compareWithReference(mlir::ModuleOp module, runtime::Instance &instance,
                                                  const VerifyOptions &options);

/// Compiles the model in a file and compares it.
llvm::Expected<Verification> verifyFile(llvm::StringRef path, const VerifyOptions &options);

} // namespace sluice::compiler
