// NCCL, loaded as a library on the first exchange between devices: programs with one device run without it. Its
// interface is declared here, so that a build requires no toolkit; it has not changed since NCCL 2.14 (nccl.h).
#pragma once

#include "backends/cuda/libraries/LibrarySearch.h"
#include "backends/cuda/runtime/Driver.h"
#include "backends/cuda/runtime/Error.h"
#include "sluice/backend/collectives.h"

#include <cstddef>
#include <string>

namespace sluice::cuda {

using NcclCommunicator = struct ncclComm *;

enum class NcclResult : int { // ncclResult_t
  Success = 0,
  CudaError = 1,
  SystemError = 2,
  InternalError = 3,
  InvalidArgument = 4,
  InvalidUsage = 5,
  RemoteError = 6,
  InProgress = 7,
};

enum class NcclType : int { I32 = 2, I64 = 4, F16 = 6, F32 = 7, F64 = 8, BF16 = 9 }; // ncclDataType_t
enum class NcclReduction : int { Sum = 0, Max = 2 };                                 // ncclRedOp_t

/// 128 bytes, all significant; passed by value.
using NcclId = sluice_unique_id;

/// The struct of version 2.14. Later versions use their defaults for missing fields.
struct NcclConfig {
  size_t size = sizeof(NcclConfig);
  unsigned magic = 0xcafebeef;
  unsigned version = 21400;
  int blocking = 0;
};

// X(member, symbol, parameters)
#define SLUICE_FOR_EACH_NCCL_FUNCTION(X)                                                                               \
  X(version, "ncclGetVersion", (int *version))                                                                         \
  X(makeId, "ncclGetUniqueId", (NcclId * id))                                                                          \
  X(init, "ncclCommInitRankConfig",                                                                                    \
    (NcclCommunicator * communicator, int ranks, NcclId id, int rank, NcclConfig *config))                             \
  X(asyncError, "ncclCommGetAsyncError", (NcclCommunicator communicator, NcclResult * error))                          \
  X(finalize, "ncclCommFinalize", (NcclCommunicator communicator))                                                     \
  X(destroy, "ncclCommDestroy", (NcclCommunicator communicator))                                                       \
  X(abort, "ncclCommAbort", (NcclCommunicator communicator))                                                           \
  X(groupStart, "ncclGroupStart", ())                                                                                  \
  X(groupEnd, "ncclGroupEnd", ())                                                                                      \
  X(allReduce, "ncclAllReduce",                                                                                        \
    (const void *send, void *receive, size_t count, NcclType type, NcclReduction reduction,                            \
     NcclCommunicator communicator, DriverStream stream))                                                              \
  X(broadcast, "ncclBroadcast",                                                                                        \
    (const void *send, void *receive, size_t count, NcclType type, int root, NcclCommunicator communicator,            \
     DriverStream stream))                                                                                             \
  X(reduce, "ncclReduce",                                                                                              \
    (const void *send, void *receive, size_t count, NcclType type, NcclReduction reduction, int root,                  \
     NcclCommunicator communicator, DriverStream stream))                                                              \
  X(allGather, "ncclAllGather",                                                                                        \
    (const void *send, void *receive, size_t sendCount, NcclType type, NcclCommunicator communicator,                  \
     DriverStream stream))                                                                                             \
  X(reduceScatter, "ncclReduceScatter",                                                                                \
    (const void *send, void *receive, size_t receiveCount, NcclType type, NcclReduction reduction,                     \
     NcclCommunicator communicator, DriverStream stream))

/// The functions. A nonblocking communicator may return InProgress. It must not be used until asyncError returns
/// another result; only then is the work in its stream.
struct Nccl {
#define SLUICE_NCCL_MEMBER(member, symbol, parameters) NcclResult(*member) parameters;
  SLUICE_FOR_EACH_NCCL_FUNCTION(SLUICE_NCCL_MEMBER)
#undef SLUICE_NCCL_MEMBER
  const char *(*resultText)(NcclResult result);
  const char *(*lastError)(NcclCommunicator communicator);
  std::string path, versionText; ///< "2.28.9"

  /// The library named by SLUICE_NCCL, or the first candidate that loads. Throws an unsupported error with the
  /// candidates.
  static const Nccl &get();
  /// The search of `get`.
  static LibrarySearch search();

  /// The error text of `what`, whose result is neither success nor in progress. The communicator may be null.
  Error errorOf(NcclResult result, NcclCommunicator communicator, const std::string &what) const;
};

} // namespace sluice::cuda
