// What replicas of a program have of its values, each on a share of the rows of a call.
#pragma once

#include "mlir/IR/Value.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace sluice::ir {

/// Numbers of a call that are known where rows are shared out, each an i64 scalar that is read when it is asked for: of
/// `all` its rows, and of the `first` among them that a share has.
struct RowNumbers {
  llvm::function_ref<mlir::Value()> all, first;
};

/// How what one device would have is made of what the replicas have.
enum class RowFlow {
  Whole, ///< each has it
  Apart, ///< each has its own rows of it
  Sum,   ///< it is the sum of theirs
  Max,   ///< it is the largest of theirs, element by element
  First, ///< it is the first replica's: others may have something else
};

} // namespace sluice::ir
