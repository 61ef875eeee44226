// Which actions of a call must precede which: follows from the values that they read, make and overwrite.
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include <vector>

namespace sluice::passes {

/// The values that an action touches, by number.
struct ActionUses {
  llvm::SmallVector<unsigned, 4> reads;
  llvm::SmallVector<unsigned, 2> makes;
  /// Values whose memory the action reuses for a result: it follows the actions before it in the list that read them.
  llvm::SmallVector<unsigned, 1> reuses;
  /// Old values of states that a result of the action replaces in the next call: it follows all of their other readers.
  llvm::SmallVector<unsigned, 1> replaces;
};

/// Dependences by action. Each list is sorted and without duplicates.
struct Dependences {
  std::vector<llvm::SmallVector<unsigned, 4>> before;  ///< actions of the same call that must be done first
  std::vector<llvm::SmallVector<unsigned, 2>> carried; ///< actions of the previous call that must be done first
};

/// `actions` are in program order.
Dependences findDependences(llvm::ArrayRef<ActionUses> actions);

} // namespace sluice::passes
