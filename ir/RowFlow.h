// What replicas of a program have of its values, each on a share of the rows of a call.
#pragma once

namespace sluice::ir {

/// How what one device would have is made of what the replicas have.
enum class RowFlow {
  Whole, ///< each has it
  Apart, ///< each has its own rows of it
  Sum,   ///< it is the sum of theirs
  Max,   ///< it is the largest of theirs, element by element
  First, ///< it is the first replica's: others may have something else
};

} // namespace sluice::ir
