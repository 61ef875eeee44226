// The bodies of the compiler's passes. driver/PassTable.h registers the passes, with their order.
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Support/LogicalResult.h"

namespace sluice::ir {
class Target;
}

namespace sluice::passes {

class CostModel;
enum class BucketPolicy;
class DeviceBackends;
class KnownFusions;
struct PreparedKernels;
class SharedKernels;

/// Replaces f32 by f64 everywhere: states, values, attributes. For tests and for `--dtype f64`.
void promoteToF64(mlir::ModuleOp module);

/// Inserts a `variable` after each value with respect to which gradients are requested, so that all its consumers read
/// one value.
void keepVariables(mlir::ModuleOp module);

/// Rewrites ops to their canonical forms.
mlir::LogicalResult canonicalize(mlir::ModuleOp module);

/// Casts products, and the ops between them for which that is safe, to the module's precision.
void mixPrecision(mlir::ModuleOp module);

/// Replaces the graph by entry points with gradients and updates.
mlir::LogicalResult buildEntryPoints(mlir::ModuleOp module);

/// Replaces scans by loops.
void lowerScans(mlir::ModuleOp module);
/// Replaces each branch by two loops, each of which runs once or not at all.
void lowerBranches(mlir::ModuleOp module);

/// Replaces composite ops that request early expansion by their formulas. Runs in `train`. Ops that each replica
/// applies to its local rows are expanded in `parallel`, after partitioning.
void expandComposites(mlir::ModuleOp module);

/// Stores the weights that products read in f16 or bf16, for inference. Fails if an entry point other than `init`
/// updates such a weight.
mlir::LogicalResult narrowWeights(mlir::ModuleOp module, ir::Precision stored);

/// Stores the weights that products read in blocks of bytes with scales (q8_0), for inference. Warns about weights that
/// stay in f32. Fails if an entry point other than `init` updates such a weight.
mlir::LogicalResult quantizeWeights(mlir::ModuleOp module);

/// Replaces the states of a functional model with inputs and outputs of its entry points.
mlir::LogicalResult functionalStates(mlir::ModuleOp module);

/// Gives state that rows carry from step to step the rows of a full call. Returns whether there is such state; the
/// module is unchanged if not.
bool carryRows(mlir::ModuleOp module);

/// Rewrites the module to the program of one replica: rows are sharded and sums over rows reduced.
mlir::LogicalResult partitionRows(mlir::ModuleOp module);

/// If there are several microbatches, splits entry points into a part per microbatch and a part per call.
mlir::LogicalResult cutMicrobatches(mlir::ModuleOp module);

/// If the module's `zero` is set, each replica keeps and updates one shard of the optimizer state.
mlir::LogicalResult shardOptimizer(mlir::ModuleOp module);

/// Exchanges each value once.
void mergeCollectives(mlir::ModuleOp module);

/// Names the subject of each collective: the gradient of a parameter, a statistic, an output.
void nameCollectives(mlir::ModuleOp module);

/// Reduces gradients in the module's wire type if that type is narrower than theirs.
void narrowGradients(mlir::ModuleOp module);

/// Exchanges the shards of each kind in `buckets` buckets.
void bucketShards(mlir::ModuleOp module, int64_t buckets);

/// Canonicalizes ops, merges equal ops and removes dead ops.
mlir::LogicalResult simplify(mlir::ModuleOp module);

/// Gives every value a device of the target: its pin, else the device fixed by the model, else that chosen by the
/// compiler (assign/ChosenDevices.h), else the first device. `backends` decide which devices support an op; null: all
/// devices do.
mlir::LogicalResult placeValues(mlir::ModuleOp module, const DeviceBackends *backends = nullptr);

/// Computes conditions of branches within branches before the outermost branch, unless the host computes them.
void hoistConditions(mlir::ModuleOp module);

/// Inserts a `sluice.copy` where an op reads a value of another device. Copies that the model's `copies` policy forbids
/// are errors, with one diagnostic per source line. `backends` as above.
mlir::LogicalResult insertCopies(mlir::ModuleOp module, const DeviceBackends *backends = nullptr);

/// One copy per value and destination, as early as possible, with its size and time.
void deduplicateCopies(mlir::ModuleOp module);

/// Replaces ops for which the backend of their device has no kernel by their formulas. Returns whether it replaced any.
bool expandMissing(mlir::ModuleOp module, const DeviceBackends &backends);

/// Verifies that no value crosses devices without a copy, the invariant of `copied` and `fused`.
mlir::LogicalResult verifyPlaced(mlir::ModuleOp module);

/// Reports ops that the backend of their device cannot run.
mlir::LogicalResult checkSupport(mlir::ModuleOp module, const DeviceBackends &backends);

/// Reports backends that lack tree sums, if logical shards require them.
mlir::LogicalResult checkTreeSums(mlir::ModuleOp module, const DeviceBackends &backends);

/// Chooses layouts from the backends' proposals; the layouts of states are kept in `physical`.
mlir::LogicalResult assignLayouts(mlir::ModuleOp module, const DeviceBackends &backends);

/// Replaces values that depend only on weights, in entry points that do not change these weights, with derived states.
/// The derived states computed for the same entry points have one derivation. `mayGrow` permits derived states that
/// are not small vectors; together they have at most a quarter of the bytes of all other states.
void deriveStates(mlir::ModuleOp module, bool mayGrow = true);

/// Puts every op into a `sluice.kernel`, one per launch. Without `fuse` each op has its own kernel. Groups of entry
/// points in `known` are reused; new ones are added.
void fuseKernels(mlir::ModuleOp module, const DeviceBackends &backends, bool fuse, KnownFusions *known = nullptr);

/// Gives each loop-carried value one buffer; adds copying kernels where that is not possible.
void settleLoops(mlir::ModuleOp module);

/// The backends compile each kernel; a function and a launch replace it. Descriptions of kernels in `kept` or `shared`
/// are reused; all others are added.
mlir::LogicalResult prepareKernels(mlir::ModuleOp module, const DeviceBackends &backends,
                                   PreparedKernels *kept = nullptr, SharedKernels *shared = nullptr);

/// Gives every launch and copy its queue, its position in the issue order, and its waits. `buckets` is the bucketing
/// policy of collectives.
void scheduleActions(mlir::ModuleOp module, const ir::Target &target, const CostModel &costs, BucketPolicy buckets);

/// Gives every buffer an arena and an offset; states are updated in place.
void planMemory(mlir::ModuleOp module, const ir::Target &target, bool reuse);

/// Replaces the waits by those that buffer reuse requires, within and across calls.
void planWaits(mlir::ModuleOp module, const ir::Target &target);

/// Verifies that the waits of a planned module keep every buffer until its last reader is done.
mlir::LogicalResult verifyPlan(mlir::ModuleOp module, const ir::Target &target);

} // namespace sluice::passes
