// What holds for a whole module: see ir/ops/model/Module.td.
#pragma once

#include "ir/Dialect.h"

namespace sluice::ir {

/// Of the text that `model` heads; incremented when its meaning changes. Dumps of other formats are refused by name.
inline constexpr int64_t kTextFormat = 2;

/// The module's `model`; one of phase `model` without a name is added where there is none.
ModelOp getModel(mlir::ModuleOp module);

/// The module's `model`, or null.
ModelOp findModel(mlir::ModuleOp module);

/// Builds behind the ops at the top of a module: model, devices, queues and arenas.
mlir::OpBuilder behindHead(mlir::ModuleOp module);

/// How many rows `?` may have; 0 if the module does not say.
int64_t getCapacity(mlir::ModuleOp module);

/// How many calls may be under way at once, unless a module says otherwise: one computes while the next one's inputs
/// travel.
inline constexpr int64_t kCallsInFlight = 2;
inline constexpr int64_t kMostCallsInFlight = 16;

inline constexpr int64_t kMostReplicas = 1024;

/// So many replicas are as many as processes are launched; what needs a number before that is planned for that of these.
inline constexpr int64_t kReplicasOfLaunch = 0, kPlannedReplicas = 8;

/// How many calls of an entry point may be under way at once.
int64_t getCallsInFlight(mlir::ModuleOp module);

/// How many replicas of the program run together, each on a share of the rows of a call, or kReplicasOfLaunch.
int64_t getReplicas(mlir::ModuleOp module);

/// Whether the program is that of one of several replicas, or of however many there will be.
bool isReplicated(mlir::ModuleOp module);

inline constexpr int64_t kMostMicrobatches = 1024;

/// In how many microbatches a replica does its rows of a call at most, one after another.
int64_t getMicrobatches(mlir::ModuleOp module);

/// Into how many logical shards the rows of a call are cut, whatever the number of replicas; 0 if nobody asks for that.
int64_t getLogicalShards(mlir::ModuleOp module);

/// Why so many replicas cannot do them in one order of sums; empty if they can.
std::string whyNotShared(int64_t shards, int64_t replicas);

/// Whether no part of the program has all rows of a call: replicas or microbatches share them.
bool sharesRows(mlir::ModuleOp module);

/// For how many replicas the program's work is planned.
int64_t getPlannedReplicas(mlir::ModuleOp module);

/// The states that hold the number of rows of a call over all replicas, where `capacity` is that of one, and the number of
/// the first that a replica, or a microbatch of one, has of them.
inline constexpr llvm::StringLiteral kGlobalRows = "global_rows", kFirstRow = "first_row";

/// The state that holds a replica's number, from 0, where its program works on a shard of its own.
inline constexpr llvm::StringLiteral kReplica = "replica";

/// Whether a collective is of values without rows, and from a replica that there is.
mlir::LogicalResult verifyCollective(CollectiveOp op);

/// What a collective is of; null if nobody has said so.
SubjectAttr getSubject(CollectiveOp op);
void setSubject(CollectiveOp op, SubjectAttr subject);

/// Whether each replica has elements of its own in what is gathered or scattered.
bool isOfShards(CollectiveOp op);

/// Of all that is reduced, broadcast, gathered or scattered.
int64_t bytesOf(CollectiveOp op, int64_t rows);

/// What each replica has of a collective to which they give `parts`, one each.
llvm::SmallVector<HostTensor> evaluateTogether(CollectiveOp op, llvm::ArrayRef<HostTensor> parts);

/// What products compute in where the model says f32.
Precision getPrecision(mlir::ModuleOp module);
void setPrecision(mlir::ModuleOp module, Precision precision);

/// The element type of a precision.
mlir::FloatType typeOf(mlir::MLIRContext *context, Precision precision);

/// "model" if the module does not say.
llvm::StringRef getModelName(mlir::ModuleOp module);

/// Nothing, or what is wrong with a text because it is of another format, as "line:column: error: ...".
std::string problemOfFormat(llvm::StringRef text);

} // namespace sluice::ir
