// NCCL as a library that is looked for when devices exchange: a program of one device runs without it. Its interface is
// declared here, so that a build needs no toolkit; it has been the same since NCCL 2.14 (nccl.h).
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

/// 128 bytes, all of which matter; passed by value.
using NcclId = sluice_unique_id;

/// As it was in 2.14: later versions take what is missing for their own defaults.
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

/// The functions. Those of a communicator that does not block may give InProgress: then the communicator is not to be used
/// until asyncError says something else. Work is in its stream only then.
struct Nccl {
#define SLUICE_NCCL_MEMBER(member, symbol, parameters) NcclResult(*member) parameters;
  SLUICE_FOR_EACH_NCCL_FUNCTION(SLUICE_NCCL_MEMBER)
#undef SLUICE_NCCL_MEMBER
  const char *(*resultText)(NcclResult result);
  const char *(*lastError)(NcclCommunicator communicator);
  std::string path, versionText; ///< "2.28.9"

  /// The library that SLUICE_NCCL names, or the first of those that there are. Throws an error of something that is not there,
  /// with where it was looked for.
  static const Nccl &get();
  /// Where `get` looks.
  static LibrarySearch search();

  /// What a result of `what`, which is neither success nor in progress, means; null where there is no communicator.
  Error errorOf(NcclResult result, NcclCommunicator communicator, const std::string &what) const;
};

} // namespace sluice::cuda
