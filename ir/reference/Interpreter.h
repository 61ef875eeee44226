// Runs entry points with the reference functions, in double precision: the oracle of tests and of `sluice verify`.
#pragma once

#include "ir/Dialect.h"
#include <map>
#include <string>

namespace sluice::ir {

/// States by name.
using StateMap = std::map<std::string, HostTensor>;

struct InterpreterOptions {
  /// Round every op's results to its element type; off: floats wider than two bytes are computed in double.
  bool roundToType = false;
  /// Called after each op with its operands and its results; consumers read the results as the callback leaves them.
  std::function<void(mlir::Operation *, llvm::ArrayRef<HostTensor> operands, llvm::MutableArrayRef<HostTensor> results)>
      observer;
  /// The rows of the whole call over all replicas. None: the sum of the shares' rows. Required for a microbatch.
  std::optional<int64_t> allRows = {};
};

/// The inputs of one of several replicas: input values, its own states, and its rows of the call.
struct ReplicaShare {
  llvm::SmallVector<HostTensor> inputs;
  StateMap &states;
  int64_t rows = 0;
  std::optional<int64_t> firstRow = {}; ///< among the rows of the call; none: after those of the previous shares
};

/// Runs `entry` on all replicas together, with their collectives, and returns the results of each. Updates their
/// states, and sets those that hold the number of all rows and the first row of each. Fails like `interpret`.
mlir::FailureOr<llvm::SmallVector<llvm::SmallVector<HostTensor>>>
interpretReplicas(EntryOp entry, llvm::MutableArrayRef<ReplicaShare> shares, const InterpreterOptions &options = {});

/// Runs `entry` on `inputs` with `rows` rows; applies its `set`s to `states`. Fails with a diagnostic on an op without
/// a reference function. Works on any phase up to `planned`, including kernels and loops.
mlir::FailureOr<llvm::SmallVector<HostTensor>> interpret(EntryOp entry, llvm::ArrayRef<HostTensor> inputs,
                                                         StateMap &states, int64_t rows,
                                                         const InterpreterOptions &options = {});

} // namespace sluice::ir
