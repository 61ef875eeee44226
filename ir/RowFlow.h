// The relation of a value's parts on replicas, each of which has a share of a call's rows, to the whole value.
#pragma once

#include "mlir/IR/Value.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace sluice::ir {

/// Row numbers of a call for a sharded program, each an i64 scalar that is read on first use: the number of `all` rows,
/// and the global number of the `first` row of a share.
struct RowNumbers {
  llvm::function_ref<mlir::Value()> all, first;
};

/// How the single-device value is composed of the replicas' values. For an op, Whole has another meaning: see
/// `RowFlowOp`.
enum class RowFlow {
  Whole, ///< each has the value
  Apart, ///< each has its own rows
  Sum,   ///< the sum of the parts
  Max,   ///< the elementwise maximum of the parts
  First, ///< the first replica's value; others may differ
};

} // namespace sluice::ir
