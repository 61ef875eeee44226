// The compiler's passes, in the order in which Pipeline.cpp runs them.
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Support/LogicalResult.h"
#include "passes/assign/ChosenDevices.h"

namespace sluice::ir {
class Target;
}

namespace sluice::passes {

class CostModel;
enum class BucketPolicy;
class DeviceBackends;
struct PreparedKernels;

/// Replaces f32 by f64 everywhere: states, values, attributes. For tests and for `--dtype f64`.
void promoteToF64(mlir::ModuleOp module);

/// model -> train, first. Lets what reads a value that a gradient is asked by go on reading it.
void keepVariables(mlir::ModuleOp module);

/// model -> train, second. Brings ops to the forms that they call canonical.
mlir::LogicalResult canonicalize(mlir::ModuleOp module);

/// model -> train, third. Brings products, and the ops between them that are safe, to the module's precision.
void mixPrecision(mlir::ModuleOp module);

/// model -> train. Entry points with gradients and updates in place of the graph.
mlir::LogicalResult buildEntryPoints(mlir::ModuleOp module);

/// model -> train, behind what makes gradients. Loops in the place of scans.
void lowerScans(mlir::ModuleOp module);
void lowerBranches(mlir::ModuleOp module);

/// Replaces ops by the formula that they stand for, where it is of sums over the rows: in `train`, or where replicas keep
/// the op to their own rows, when these are shared out.
void expandComposites(mlir::ModuleOp module);

/// train -> parallel, first. States that rows carry from step to step have the rows of a full call.
void carryRows(mlir::ModuleOp module);

/// train -> parallel, second. The program of one of the module's replicas: rows are shared out, sums over them
/// reduced.
mlir::LogicalResult partitionRows(mlir::ModuleOp module);

/// train -> parallel, third. Entry points with rows in parts, for each microbatch and once a call, if there are
/// several microbatches.
mlir::LogicalResult cutMicrobatches(mlir::ModuleOp module);

/// train -> parallel, fourth. The optimizer keeps and updates a shard in each replica, if the module's `zero` says so.
mlir::LogicalResult shardOptimizer(mlir::ModuleOp module);

/// train -> parallel, behind what merges equal ops. Lets a value be exchanged once.
void mergeCollectives(mlir::ModuleOp module);

/// train -> parallel. Says of each collective what it is of: the gradient of a parameter, a statistic, an output.
void nameCollectives(mlir::ModuleOp module);

/// train -> parallel. Gradients are reduced in the module's wire type, where that is narrower than they are.
void narrowGradients(mlir::ModuleOp module);

/// train -> parallel, behind all that changes what is exchanged. Shards of a kind are exchanged in so many buckets.
void bucketShards(mlir::ModuleOp module, int64_t buckets);

/// Brings ops to canonical forms, merges equal ones and removes dead ones.
mlir::LogicalResult simplify(mlir::ModuleOp module);

/// train -> placed, first half. Gives every value a device of the target: as pinned, as fixed by the model, as
/// `chosen`, else the first. `backends` know what can be made where; null: everything.
mlir::LogicalResult placeValues(mlir::ModuleOp module, const DeviceBackends *backends = nullptr,
                                const ChosenDevices &chosen = ChosenDevices());

/// train -> placed, second half. Puts a `sluice.copy` where an op reads a value of another device. Fails with a
/// diagnostic per source line on those that the model's `copies` do not allow. `backends` and `chosen` as above.
mlir::LogicalResult insertCopies(mlir::ModuleOp module, const DeviceBackends *backends = nullptr,
                                 const ChosenDevices &chosen = ChosenDevices());

/// placed -> copied. One copy per value and destination, as early as possible, with its size and time.
void deduplicateCopies(mlir::ModuleOp module);

/// placed -> copied. Replaces ops for which the backend of their device has no kernel by the formula that they stand
/// for; gives whether there were any.
bool expandMissing(mlir::ModuleOp module, const DeviceBackends &backends);

/// Verifies that nothing crosses devices without a copy; what `copied` and every later phase must leave.
mlir::LogicalResult verifyPlaced(mlir::ModuleOp module);

/// copied -> fused, first third. Fails on ops that the backend of their device cannot run.
mlir::LogicalResult checkSupport(mlir::ModuleOp module, const DeviceBackends &backends);

/// copied -> fused, second third. Chooses layouts from what the backends propose; states keep theirs in `physical`.
mlir::LogicalResult assignLayouts(mlir::ModuleOp module, const DeviceBackends &backends);

/// copied -> fused, last third. Puts every op into a `sluice.kernel`, one per launch; alone if not `fuse`.
void fuseKernels(mlir::ModuleOp module, const DeviceBackends &backends, bool fuse);

/// fused -> scheduled, first. Lets what loops carry have one place: adds kernels that copy where it needs them.
void settleLoops(mlir::ModuleOp module);

/// Asks the backends to make each kernel; its launch is recorded on it. Kernels that are in `kept` are not asked about,
/// others are put there.
mlir::LogicalResult prepareKernels(mlir::ModuleOp module, const DeviceBackends &backends,
                                   PreparedKernels *kept = nullptr);

/// fused -> scheduled. Gives every kernel and copy its queue, its place in the order of issue, and its waits;
/// collectives share as `buckets` says.
void scheduleActions(mlir::ModuleOp module, const ir::Target &target, const CostModel &costs, BucketPolicy buckets);

/// scheduled -> planned, first half. Gives every buffer an arena and an offset, states in place.
void planMemory(mlir::ModuleOp module, const ir::Target &target, bool reuse);

/// scheduled -> planned, second half. Replaces the waits by those that the memory needs, across calls too.
void planWaits(mlir::ModuleOp module, const ir::Target &target);

/// Verifies that a planned module's waits keep every buffer until all have read it.
mlir::LogicalResult verifyPlan(mlir::ModuleOp module, const ir::Target &target);

} // namespace sluice::passes
