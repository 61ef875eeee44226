// Which collectives are done as one, so that the latency of a link is paid less often.
#pragma once

#include "ir/Dialect.h"
#include "passes/schedule/Actions.h"

namespace sluice::passes {

/// How the collectives of an entry point share.
enum class BucketPolicy {
  Auto,   ///< as calls are predicted to be the fastest by the clock; in as few buckets as are as fast
  Fewest, ///< in one bucket all that may share one
  Each,   ///< each alone
};

/// Collectives of one kind, reduction and root, of values of one device and element type, in the order in which these
/// are there.
struct Bucket {
  llvm::SmallVector<ir::CollectiveOp> members;
  /// The op behind which it can be done: the last that makes or reads a value of it, or reads a state that it sets.
  mlir::Operation *behind = nullptr;
};

/// The buckets of an entry point whose kernels are launches and whose other work has queues, each collective in one.
/// All that makes a collective's value is put before all that reads its result, as far as it goes. Of collectives whose
/// results nobody but a state takes, the states may lie one behind another.
llvm::SmallVector<Bucket> bucketCollectives(ir::EntryOp entry, const Queues &queues, const ir::ActionClock &clock,
                                            int64_t rows, BucketPolicy policy);

} // namespace sluice::passes
