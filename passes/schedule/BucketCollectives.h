// Groups collectives into buckets, so that the link's latency is paid less often.
#pragma once

#include "ir/Dialect.h"
#include "passes/schedule/Actions.h"

namespace sluice::passes {

/// Bucketing policy of an entry point's collectives.
enum class BucketPolicy {
  Auto,   ///< the fastest predicted calls; of equally fast bucketings the one with the fewest buckets
  Fewest, ///< one bucket for all that may share one
  Each,   ///< one bucket each
};

/// Collectives of one kind, reduction and root, whose values have one device and element type, in the order in which
/// the values are available.
struct Bucket {
  llvm::SmallVector<ir::CollectiveOp> members;
  /// The op after which the bucket can run: the last producer or reader of its values, or reader of the states that it
  /// sets.
  mlir::Operation *behind = nullptr;
};

/// The buckets of an entry point; each collective is in one. Kernels must be launches, and all other actions must have
/// queues. Producers of a collective's value move before the consumers of its result as far as possible. If the only
/// consumers of the results are states, these states may be contiguous.
llvm::SmallVector<Bucket> bucketCollectives(ir::EntryOp entry, const Queues &queues, const ir::ActionClock &clock,
                                            int64_t rows, BucketPolicy policy);

} // namespace sluice::passes
