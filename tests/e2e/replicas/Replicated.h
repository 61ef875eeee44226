// A model in the reference interpreter, on several replicas with a share of the rows each.
#pragma once

#include "tests/e2e/Harness.h"
#include <set>

namespace sluice::test {

/// The text of a model with this many replicas on `devices`, a `--devices` list; empty: the host. Each replica has at
/// most the given number of microbatches. With `shards`, calls are cut into this many logical shards.
std::string onReplicas(const std::string &text, int64_t replicas, const std::string &devices,
                       bool syncBatchNorm = false, int64_t microbatches = 1, int64_t shards = 0);

/// A text with replicas whose optimizer states are sharded.
std::string withShards(const std::string &text);

/// The text of a model whose replicas reduce gradients in this type.
std::string onWire(const std::string &text, ir::Precision wire);

/// The model in f64 with one virtual accelerator per replica.
Compiled onSimulators(const std::string &text, int64_t replicas, int64_t microbatches = 1, int64_t shards = 0);

/// Tests that all replicas have the same states, which agree with another program's within 1e-12.
void expectStatesOf(Compiled &actual, const Compiled &expected);

class Replicated {
public:
  /// `text` is in phase `model`; `options` apply to the phases up to `phase`, which is `parallel` or later.
  Replicated(const std::string &text, size_t replicas, bool syncBatchNorm, const CompileOptions &options = {},
             const std::string &phase = "parallel", int64_t microbatches = 1, int64_t shards = 0);

  /// States by replica.
  std::vector<ir::StateMap> states;

  /// Runs an entry point with shares[i] rows on replica i, and returns the results of one device. Rows are
  /// concatenated; all other values are from the given replica. Logical shards are distributed as by the runtime.
  Values run(const std::string &entry, const Values &inputs, const std::vector<int64_t> &shares, size_t replica = 0);

  /// The number of places where a replica could use its own value instead of the common value. Places are uses of the
  /// number of all rows, and sums over replicas.
  size_t counts();
  /// Uses the local value in one of these places; returns its description.
  std::string takeLocal(size_t place);

private:
  /// Rows of a replica: their number, and the first within the call.
  struct Rows {
    std::vector<int64_t> counts, firsts;
  };
  /// Runs an entry point on these of `all` rows; appends each replica's row outputs to its earlier ones.
  void runRows(ir::EntryOp entry, const Values &inputs, const Rows &rows, int64_t all, std::vector<Values> &outputs);
  int64_t microbatchesFor(const Rows &rows);
  Rows microbatchOf(const Rows &rows, int64_t number, int64_t all);
  mlir::SmallVector<mlir::OpOperand *> findCounts();
  void runParts(ir::PartsOp whole, const Values &inputs, const Rows &rows, int64_t all, std::vector<Values> &outputs);

  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> op;
  std::set<std::string> withRows; // outputs returned so far
};

/// Tests that training steps at a rate of 0.1, with shares[i] rows on replica i, have the losses and states of one
/// device within 1e-12.
void expectAsOneDevice(const std::string &text, const Values &inputs, const std::vector<int64_t> &shares,
                       int64_t microbatches, int steps);

} // namespace sluice::test
