// NVIDIA's driver, loaded as a library on first use: executables also run on machines without a driver. Its interface
// is declared here, so that a build requires no toolkit. The names are those of the symbols since CUDA 12, without the
// macros of the headers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace sluice::cuda {

using DeviceAddress = unsigned long long;
using DriverContext = struct CUctx_st *;
using DriverStream = struct CUstream_st *;
using DriverEvent = struct CUevent_st *;
using DriverModule = struct CUmod_st *;
using DriverFunction = struct CUfunc_st *;
using DriverGraph = struct CUgraph_st *;
using DriverExecutable = struct CUgraphExec_st *; // a graph that can be launched

/// Attributes of devices.
enum class DeviceAttribute {
  ClockKilohertz = 13,
  Multiprocessors = 16,
  MemoryClockKilohertz = 36,
  MemoryBusBits = 37,
  Major = 75, // compute capability
  Minor = 76,
  WaitsForNumbers = 122, // of 64 bits
};

/// Attributes of functions.
enum class FunctionAttribute {
  MostSharedBytes = 8, // limit per launch
};

inline constexpr unsigned kStreamNonBlocking = 1; // no synchronization with the default stream
inline constexpr unsigned kEventWithTimes = 0, kEventWithoutTimes = 2;
inline constexpr unsigned kHostMemoryOfAllContexts = 1;

// A mode of captures. Calls that could disturb a capture, such as allocations, are errors in the capturing thread only.
// In other threads they are allowed, because other libraries of the process may allocate there.
inline constexpr int kCaptureOfThread = 1;

inline constexpr unsigned kWaitUntilNoLess = 0; // until memory is no less than the number, in cyclic order

inline constexpr int kNotReady = 600; // returned if an event is not complete, also when its time is queried

// X(member, symbol, parameters)
#define SLUICE_FOR_EACH_DRIVER_FUNCTION(X)                                                                             \
  X(init, "cuInit", (unsigned flags))                                                                                  \
  X(version, "cuDriverGetVersion", (int *version))                                                                     \
  X(errorName, "cuGetErrorName", (int status, const char **name))                                                      \
  X(deviceCount, "cuDeviceGetCount", (int *count))                                                                     \
  X(deviceGet, "cuDeviceGet", (int *device, int ordinal))                                                              \
  X(deviceName, "cuDeviceGetName", (char *name, int length, int device))                                               \
  X(deviceIdentity, "cuDeviceGetUuid_v2", (unsigned char(*bytes)[16], int device))                                     \
  X(deviceAttribute, "cuDeviceGetAttribute", (int *value, DeviceAttribute attribute, int device))                      \
  X(contextRetain, "cuDevicePrimaryCtxRetain", (DriverContext * context, int device))                                  \
  X(contextRelease, "cuDevicePrimaryCtxRelease_v2", (int device))                                                      \
  X(contextSetCurrent, "cuCtxSetCurrent", (DriverContext context))                                                     \
  X(memoryInfo, "cuMemGetInfo_v2", (size_t *free, size_t *total))                                                      \
  X(allocate, "cuMemAlloc_v2", (DeviceAddress * address, size_t bytes))                                                \
  X(release, "cuMemFree_v2", (DeviceAddress address))                                                                  \
  X(fill, "cuMemsetD8Async", (DeviceAddress to, unsigned char value, size_t bytes, DriverStream stream))               \
  X(copyUp, "cuMemcpyHtoDAsync_v2", (DeviceAddress to, const void *from, size_t bytes, DriverStream stream))           \
  X(copyDown, "cuMemcpyDtoHAsync_v2", (void *to, DeviceAddress from, size_t bytes, DriverStream stream))               \
  X(copyWithin, "cuMemcpyDtoDAsync_v2", (DeviceAddress to, DeviceAddress from, size_t bytes, DriverStream stream))     \
  X(copyAcross, "cuMemcpyPeerAsync",                                                                                   \
    (DeviceAddress to, DriverContext target, DeviceAddress from, DriverContext source, size_t bytes,                   \
     DriverStream stream))                                                                                             \
  X(hostAllocate, "cuMemHostAlloc", (void **address, size_t bytes, unsigned flags))                                    \
  X(hostRelease, "cuMemFreeHost", (void *address))                                                                     \
  X(canAccessPeer, "cuDeviceCanAccessPeer", (int *can, int device, int peer))                                          \
  X(enablePeerAccess, "cuCtxEnablePeerAccess", (DriverContext peer, unsigned flags))                                   \
  X(streamCreate, "cuStreamCreate", (DriverStream * stream, unsigned flags))                                           \
  X(streamDestroy, "cuStreamDestroy_v2", (DriverStream stream))                                                        \
  X(streamSynchronize, "cuStreamSynchronize", (DriverStream stream))                                                   \
  X(streamWait, "cuStreamWaitEvent", (DriverStream stream, DriverEvent event, unsigned flags))                         \
  X(streamWaitNumber, "cuStreamWaitValue64_v2",                                                                        \
    (DriverStream stream, DeviceAddress place, uint64_t number, unsigned flags))                                       \
  X(hostFunction, "cuLaunchHostFunc", (DriverStream stream, void (*function)(void *data), void *data))                 \
  X(eventCreate, "cuEventCreate", (DriverEvent * event, unsigned flags))                                               \
  X(eventDestroy, "cuEventDestroy_v2", (DriverEvent event))                                                            \
  X(eventRecord, "cuEventRecord", (DriverEvent event, DriverStream stream))                                            \
  X(eventSynchronize, "cuEventSynchronize", (DriverEvent event))                                                       \
  X(eventQuery, "cuEventQuery", (DriverEvent event))                                                                   \
  X(elapsed, "cuEventElapsedTime", (float *milliseconds, DriverEvent from, DriverEvent to))                            \
  X(captureBegin, "cuStreamBeginCapture_v2", (DriverStream stream, int mode))                                          \
  X(captureEnd, "cuStreamEndCapture", (DriverStream stream, DriverGraph * graph))                                      \
  X(graphInstantiate, "cuGraphInstantiateWithFlags",                                                                   \
    (DriverExecutable * executable, DriverGraph graph, unsigned long long flags))                                      \
  X(graphDestroy, "cuGraphDestroy", (DriverGraph graph))                                                               \
  X(graphLaunch, "cuGraphLaunch", (DriverExecutable executable, DriverStream stream))                                  \
  X(executableDestroy, "cuGraphExecDestroy", (DriverExecutable executable))                                            \
  X(moduleLoad, "cuModuleLoadData", (DriverModule * module, const void *image))                                        \
  X(moduleUnload, "cuModuleUnload", (DriverModule module))                                                             \
  X(moduleFunction, "cuModuleGetFunction", (DriverFunction * function, DriverModule module, const char *name))         \
  X(setAttribute, "cuFuncSetAttribute", (DriverFunction function, FunctionAttribute attribute, int value))             \
  X(launch, "cuLaunchKernel",                                                                                          \
    (DriverFunction function, unsigned gridX, unsigned gridY, unsigned gridZ, unsigned blockX, unsigned blockY,        \
     unsigned blockZ, unsigned sharedBytes, DriverStream stream, void **arguments, void **extra))

/// The functions; each returns a status, 0 on success.
struct Driver {
#define SLUICE_DRIVER_MEMBER(member, symbol, parameters) int(*member) parameters;
  SLUICE_FOR_EACH_DRIVER_FUNCTION(SLUICE_DRIVER_MEMBER)
#undef SLUICE_DRIVER_MEMBER

  /// The library named by SLUICE_CUDA_DRIVER, else the loader's default, loaded and initialized. Throws an unsupported
  /// error if the library, a function, a recent enough version or a device is missing.
  static const Driver &get();

  /// Throws unless `status` is success; `what` describes the attempt. Failed allocations, and errors of earlier work,
  /// which lose the device, are errors of exhaustion.
  void check(int status, const std::string &what) const;
  std::string textOf(int status) const;
};

} // namespace sluice::cuda
