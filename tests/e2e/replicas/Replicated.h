// A model in the reference interpreter, on several replicas that have a share of the rows each.
#pragma once

#include "tests/e2e/Harness.h"

namespace sluice::test {

/// The text of a model with so many replicas, on `devices` as `--devices` says them; empty: the host.
std::string onReplicas(const std::string &text, int64_t replicas, const std::string &devices,
                       bool syncBatchNorm = false);

class Replicated {
public:
  /// `text` is of phase `model`, `options` are of phases up to `phase`, which is `parallel` or later.
  Replicated(const std::string &text, size_t replicas, bool syncBatchNorm, passes::PipelineOptions options = {},
             const std::string &phase = "parallel");

  /// States of each replica.
  std::vector<ir::StateMap> states;

  /// Runs an entry point where replica i has shares[i] rows, and gives what one device would: rows joined, all else from the
  /// replica asked for.
  Values run(const std::string &entry, const Values &inputs, const std::vector<int64_t> &shares, size_t replica = 0);

private:
  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> op;
};

} // namespace sluice::test
