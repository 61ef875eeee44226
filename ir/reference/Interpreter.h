// Runs entry points with the reference functions, in double precision: the oracle of tests and of `sluice verify`.
#pragma once

#include "ir/Dialect.h"
#include <map>
#include <string>

namespace sluice::ir {

/// States by name.
using StateMap = std::map<std::string, HostTensor>;

struct InterpreterOptions {
  /// Rounds every op's results to its element type; off: floats wider than two bytes in double.
  bool roundToType = false;
  /// Called after each op with its operands and its results; what it leaves in the results is what others read.
  std::function<void(mlir::Operation *, llvm::ArrayRef<HostTensor> operands, llvm::MutableArrayRef<HostTensor> results)>
      observer;
  /// The rows of the whole call over all replicas; none: those of the shares, which are no microbatches.
  std::optional<int64_t> allRows = {};
};

/// What one of several replicas is given: inputs, its own states, and its rows of the call.
struct ReplicaShare {
  llvm::SmallVector<HostTensor> inputs;
  StateMap &states;
  int64_t rows = 0;
  std::optional<int64_t> firstRow = {}; ///< among those of the call; none: behind the rows of the shares before it
};

/// Runs `entry` on all replicas together, collectives among them, and gives each one's results; updates their states,
/// and sets those that hold the rows of all and the first of each. Fails as `interpret` does.
mlir::FailureOr<llvm::SmallVector<llvm::SmallVector<HostTensor>>>
interpretReplicas(EntryOp entry, llvm::MutableArrayRef<ReplicaShare> shares, const InterpreterOptions &options = {});

/// Runs `entry` on `inputs` with `rows` rows; updates `states` as its `set`s say. Fails with a diagnostic on an op
/// without a reference function. Works on any phase up to `planned`: kernels and loops are
/// entered.
mlir::FailureOr<llvm::SmallVector<HostTensor>> interpret(EntryOp entry, llvm::ArrayRef<HostTensor> inputs,
                                                         StateMap &states, int64_t rows,
                                                         const InterpreterOptions &options = {});

} // namespace sluice::ir
