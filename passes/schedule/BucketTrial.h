// What calls of an entry point would take if its collectives shared buckets so and so.
#pragma once

#include "passes/schedule/BucketCollectives.h"
#include "passes/schedule/IssueOrder.h"

namespace sluice::passes {

/// An entry point whose collectives have no queues yet, all else of which has. Its order is found as it will be, and
/// followed over several calls; what their memory makes them wait for besides is not known yet.
class BucketTrial {
public:
  BucketTrial(ir::EntryOp entry, const Queues &queues, const ir::ActionClock &clock, int64_t rows);

  struct Outcome {
    double seconds = 0;                             ///< from the end of one call to the end of the next
    llvm::DenseMap<mlir::Operation *, double> ends; ///< of what a call does, from its first launch on
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
