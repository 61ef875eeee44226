// The dependences among the actions of a call, which follow from the values that they read, write and overwrite.
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include <vector>

namespace sluice::passes {

/// The values that an action accesses, by number.
struct ActionUses {
  llvm::SmallVector<unsigned, 4> reads;
  llvm::SmallVector<unsigned, 2> makes;
  /// Values whose memory the action reuses for a result: it runs after all earlier actions of the list that read them.
  llvm::SmallVector<unsigned, 1> reuses;
  /// Old state values that a result of the action replaces in the next call: it runs after all of their other readers.
  llvm::SmallVector<unsigned, 1> replaces;
};

/// Dependences by action. Each list is sorted and without duplicates.
struct Dependences {
  std::vector<llvm::SmallVector<unsigned, 4>> before;  ///< actions of the same call that must complete first
  std::vector<llvm::SmallVector<unsigned, 2>> carried; ///< actions of the previous call that must complete first
};

/// `actions` are in program order.
Dependences findDependences(llvm::ArrayRef<ActionUses> actions);

} // namespace sluice::passes
