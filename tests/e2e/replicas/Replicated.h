// A model in the reference interpreter, on several replicas that have a share of the rows each.
#pragma once

#include "tests/e2e/Harness.h"
#include <set>

namespace sluice::test {

/// The text of a model with so many replicas, on `devices` as `--devices` says them; empty: the host. Each of them has
/// so many microbatches at most. With `shards`, calls are cut into so many logical shards.
std::string onReplicas(const std::string &text, int64_t replicas, const std::string &devices,
                       bool syncBatchNorm = false, int64_t microbatches = 1, int64_t shards = 0);

/// A text on replicas, which share out what the optimizer keeps.
std::string withShards(const std::string &text);

/// The text of a model whose replicas reduce gradients in this type.
std::string onWire(const std::string &text, ir::Precision wire);

/// The model in f64 on as many virtual accelerators as it has replicas.
Compiled onSimulators(const std::string &text, int64_t replicas, int64_t microbatches = 1, int64_t shards = 0);

/// Tests that all replicas have the same states, which are those of another program within 1e-12.
void expectStatesOf(Compiled &actual, const Compiled &expected);

class Replicated {
public:
  /// `text` is of phase `model`, `options` are of phases up to `phase`, which is `parallel` or later.
  Replicated(const std::string &text, size_t replicas, bool syncBatchNorm, passes::PipelineOptions options = {},
             const std::string &phase = "parallel", int64_t microbatches = 1, int64_t shards = 0);

  /// States of each replica.
  std::vector<ir::StateMap> states;

  /// Runs an entry point where replica i has shares[i] rows, and gives what one device would: rows joined, all else from the
  /// replica asked for. With logical shards these are shared out as the runtime does.
  Values run(const std::string &entry, const Values &inputs, const std::vector<int64_t> &shares, size_t replica = 0);

  /// Where each replica could take what it has of itself for what all have: uses of the number of all rows, and sums over replicas.
  size_t counts();
  /// Takes it so in one of these places; says in which.
  std::string takeLocal(size_t place);

private:
  /// Rows of each replica: how many, and the first among those of the call.
  struct Rows {
    std::vector<int64_t> counts, firsts;
  };
  /// An entry point on these of `all` rows; its outputs go to those of each replica, rows behind what is there.
  void runRows(ir::EntryOp entry, const Values &inputs, const Rows &rows, int64_t all, std::vector<Values> &outputs);
  int64_t microbatchesFor(const Rows &rows);
  Rows microbatchOf(const Rows &rows, int64_t number, int64_t all);
  mlir::SmallVector<mlir::OpOperand *> findCounts();
  void runParts(ir::PartsOp whole, const Values &inputs, const Rows &rows, int64_t all, std::vector<Values> &outputs);

  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> op;
  std::set<std::string> withRows; // outputs, as far as they were given
};

/// Tests that steps of training at the rate 0.1, where replica i has shares[i] rows, leave the losses and states of one device,
/// within 1e-12.
void expectAsOneDevice(const std::string &text, const Values &inputs, const std::vector<int64_t> &shares,
                       int64_t microbatches, int steps);

} // namespace sluice::test
