// Predicts the time of an entry point's calls for a given bucketing of its collectives.
#pragma once

#include "passes/schedule/BucketCollectives.h"
#include "passes/schedule/IssueOrder.h"

namespace sluice::passes {

/// An entry point in which all actions except collectives have queues. Its issue order is computed as for the final
/// schedule and simulated over several calls. Waits due to memory reuse are not included yet.
class BucketTrial {
public:
  BucketTrial(ir::EntryOp entry, const Queues &queues, const ir::ActionClock &clock, int64_t rows);

  struct Outcome {
    double seconds = 0;                             ///< from the end of one call to the end of the next
    llvm::DenseMap<mlir::Operation *, double> ends; ///< of each op, in seconds from the first launch of its call
  };
  Outcome run(llvm::ArrayRef<Bucket> buckets) const;

private:
  struct Actions;

  void add(Actions &actions, ir::ActionOp op) const;
  void add(Actions &actions, const Bucket &bucket) const;

  ir::ActionListOp list;
  mlir::Block &block;
  const Queues &queues;
  const ir::ActionClock &clock;
  int64_t rows;
};

} // namespace sluice::passes
