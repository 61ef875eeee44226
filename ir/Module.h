// Properties of a whole module: see ir/ops/model/Module.td.
#pragma once

#include "ir/Dialect.h"

namespace sluice::ir {

/// The format number of a module's text, which `model` contains. It is incremented when the meaning of the text
/// changes. Text of another format is rejected, with both numbers.
inline constexpr int64_t kTextFormat = 2;

/// The module's `model`; if there is none, an unnamed one of phase `model` is added.
ModelOp getModel(mlir::ModuleOp module);

/// The module's `model`, or null.
ModelOp findModel(mlir::ModuleOp module);

/// A builder after the ops at the top of a module: model, devices, queues and arenas.
mlir::OpBuilder behindHead(mlir::ModuleOp module);

/// A dictionary of strings in an imported model: facts about its file, such as "producer" and "opset". The values are
/// untrusted, of at most kMostImportedBytes.
inline constexpr llvm::StringLiteral kImportedFromAttr = "sluice.imported_from";
inline constexpr size_t kMostImportedFacts = 32, kMostImportedBytes = 4096;

/// The maximum number of rows `?`; 0 if unspecified.
int64_t getCapacity(mlir::ModuleOp module);

/// The default number of calls in flight: one call computes while the inputs of the next call are copied.
inline constexpr int64_t kCallsInFlight = 2;
inline constexpr int64_t kMostCallsInFlight = 16;

inline constexpr int64_t kMostReplicas = 1024;

/// With kReplicasOfLaunch, the number of replicas is the number of launched processes. Decisions before the launch
/// assume kPlannedReplicas.
inline constexpr int64_t kReplicasOfLaunch = 0, kPlannedReplicas = 8;

/// The maximum number of calls of an entry point in flight.
int64_t getCallsInFlight(mlir::ModuleOp module);

/// The number of replicas of the program that run together, each on a share of a call's rows, or kReplicasOfLaunch.
int64_t getReplicas(mlir::ModuleOp module);

/// Whether the program has several replicas, or a number that the launch decides.
bool isReplicated(mlir::ModuleOp module);

inline constexpr int64_t kMostMicrobatches = 1024;

/// The maximum number of microbatches into which a replica splits its rows of a call, one after another.
int64_t getMicrobatches(mlir::ModuleOp module);

/// The number of logical shards into which the rows of a call are split, independent of the number of replicas; 0 if
/// unspecified.
int64_t getLogicalShards(mlir::ModuleOp module);

/// The reason why this number of replicas cannot run the logical shards so that the order of sums is the same for any
/// number of replicas; empty if it can.
std::string whyNotShared(int64_t shards, int64_t replicas);

/// Whether replicas or microbatches share the rows, so that no part of the program has all rows of a call.
bool sharesRows(mlir::ModuleOp module);

/// The number of replicas for which the program's work is planned.
int64_t getPlannedReplicas(mlir::ModuleOp module);

/// States with the number of a call's rows over all replicas (`capacity` is that of one replica), and the global number
/// of the first row of a replica or microbatch.
inline constexpr llvm::StringLiteral kGlobalRows = "global_rows", kFirstRow = "first_row";

/// The state with a replica's number, from 0, if its program works on a separate shard.
inline constexpr llvm::StringLiteral kReplica = "replica";

/// Verifies that the values of a collective have no rows and its root is an existing replica.
mlir::LogicalResult verifyCollective(CollectiveOp op);

/// The subject of a collective; null if unnamed.
SubjectAttr getSubject(CollectiveOp op);
void setSubject(CollectiveOp op, SubjectAttr subject);

/// Whether the collective gathers or scatters, so that each replica has separate elements.
bool isOfShards(CollectiveOp op);

/// Bytes of all values that are reduced, broadcast, gathered or scattered.
int64_t bytesOf(CollectiveOp op, int64_t rows);

/// The results of each replica for a collective over `parts`, one per replica.
llvm::SmallVector<HostTensor> evaluateTogether(CollectiveOp op, llvm::ArrayRef<HostTensor> parts);

/// The type in which products of f32 are computed.
Precision getPrecision(mlir::ModuleOp module);
void setPrecision(mlir::ModuleOp module, Precision precision);

/// The element type of a precision.
mlir::FloatType typeOf(mlir::MLIRContext *context, Precision precision);

/// "model" if unspecified.
llvm::StringRef getModelName(mlir::ModuleOp module);

/// The error if a text has another format, as "line:column: error: ..."; else empty.
std::string problemOfFormat(llvm::StringRef text);

} // namespace sluice::ir
