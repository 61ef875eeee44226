// A double of the CUDA driver: devices whose memory nothing but their own work may touch, streams that do nothing until
// somebody waits and then run in a hostile order (the simulator's), modules that the double of NVRTC made, graphs
// (Graphs.cpp).
//
// What it assumes of a driver, and enforces with an error, is in CONTRACTS.md.
//
// Threads may call it at the same time, and take turns.
//
// CUDA_EMU_DEVICES, CUDA_EMU_SEED and CUDA_EMU_VERSION set the number of devices, the order of work from when the first
// context is retained, and the version that the driver says it has; CUDA_EMU_OLD_PTX=1 makes one that is older than PTX,
// CUDA_EMU_TIMELESS=1 one that refuses events with times, CUDA_EMU_NUMBERLESS=1 one whose streams wait for no numbers, and
// CUDA_EMU_HASTE=0.01 one whose devices' clocks are faster than the host's by a hundredth.
#include "tests/cuda_emu/DriverState.h"
#include "tests/cuda_emu/HostCompiler.h"

#include <atomic>
#include <cstring>
#include <dlfcn.h>

using namespace sluice;
using namespace sluice::cuda_driver;

//===- the driver and its devices ---------------------------------------------------------------------------------===//

EXPORTED int cuInit(unsigned flags) {
  Turn turn;
  Driver &d = driver();
  int64_t devices = setting("CUDA_EMU_DEVICES", 2);
  if (flags != 0)
    return InvalidValue;
  if (devices == 0)
    return NoDevice;
  while (int64_t(d.devices.size()) < devices)
    d.devices.emplace_back(int32_t(d.devices.size()), setting("CUDA_EMU_MEMORY", kMemoryBytes));
  d.initialized = true;
  return Success;
}

EXPORTED int cuDriverGetVersion(int *version) {
  *version = int(setting("CUDA_EMU_VERSION", 13000));
  return Success;
}

EXPORTED int cuGetErrorName(int status, const char **name) {
  static const std::map<int, const char *> names = {
      {InvalidValue, "CUDA_ERROR_INVALID_VALUE"},
      {OutOfMemory, "CUDA_ERROR_OUT_OF_MEMORY"},
      {NotInitialized, "CUDA_ERROR_NOT_INITIALIZED"},
      {NoDevice, "CUDA_ERROR_NO_DEVICE"},
      {InvalidDevice, "CUDA_ERROR_INVALID_DEVICE"},
      {InvalidImage, "CUDA_ERROR_INVALID_IMAGE"},
      {InvalidContext, "CUDA_ERROR_INVALID_CONTEXT"},
      {NoBinary, "CUDA_ERROR_NO_BINARY_FOR_GPU"},
      {EccUncorrectable, "CUDA_ERROR_ECC_UNCORRECTABLE"},
      {PeerAccessUnsupported, "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED"},
      {InvalidPtx, "CUDA_ERROR_INVALID_PTX"},
      {NvlinkUncorrectable, "CUDA_ERROR_NVLINK_UNCORRECTABLE"},
      {UnsupportedPtx, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION"},
      {InvalidHandle, "CUDA_ERROR_INVALID_HANDLE"},
      {NotFound, "CUDA_ERROR_NOT_FOUND"},
      {IllegalState, "CUDA_ERROR_ILLEGAL_STATE"},
      {NotReady, "CUDA_ERROR_NOT_READY"},
      {IllegalAddress, "CUDA_ERROR_ILLEGAL_ADDRESS"},
      {LaunchOutOfResources, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"},
      {LaunchTimeout, "CUDA_ERROR_LAUNCH_TIMEOUT"},
      {PeerAccessAlreadyEnabled, "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED"},
      {PeerAccessNotEnabled, "CUDA_ERROR_PEER_ACCESS_NOT_ENABLED"},
      {LaunchFailed, "CUDA_ERROR_LAUNCH_FAILED"},
      {CaptureUnsupported, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"},
      {CaptureInvalidated, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"},
      {CaptureIsolation, "CUDA_ERROR_STREAM_CAPTURE_ISOLATION"}};
  auto found = names.find(status);
  *name = found == names.end() ? nullptr : found->second;
  return found == names.end() ? InvalidValue : Success;
}

EXPORTED int cuDeviceGetCount(int *count) {
  Turn turn;
  *count = int(driver().devices.size());
  return driver().initialized ? Success : NotInitialized;
}

EXPORTED int cuDeviceGet(int *device, int ordinal) {
  Turn turn;
  *device = ordinal;
  return ordinal >= 0 && size_t(ordinal) < driver().devices.size() ? Success : InvalidDevice;
}

EXPORTED int cuDeviceGetName(char *name, int length, int) {
  Turn turn;
  std::strncpy(name, "Emulated CUDA device", size_t(length));
  return Success;
}

/// Of its number: all processes of the machine have the same devices.
EXPORTED int cuDeviceGetUuid_v2(unsigned char *bytes, int device) {
  Turn turn;
  std::fill(bytes, bytes + 15, 0xee);
  bytes[15] = static_cast<unsigned char>(device);
  return Success;
}

EXPORTED int cuDeviceGetAttribute(int *value, int attribute, int) {
  Turn turn;
  const std::map<int, int> values = {{13, 1'000'000},
                                     {16, 4},
                                     {36, 1'000'000},
                                     {37, 1024},
                                     {75, kMajor},
                                     {76, kMinor},
                                     {122, !setting("CUDA_EMU_NUMBERLESS", 0)}};
  auto found = values.find(attribute);
  *value = found == values.end() ? 0 : found->second;
  return found == values.end() ? InvalidValue : Success;
}

EXPORTED int cuDevicePrimaryCtxRetain(Device **context, int device) {
  Turn turn;
  if (device < 0 || size_t(device) >= driver().devices.size())
    return InvalidDevice;
  auto isRetained = [](const Device &its) { return its.retained > 0; };
  if (std::none_of(driver().devices.begin(), driver().devices.end(), isRetained)) {
    driver().scheduler.emplace(uint64_t(setting("CUDA_EMU_SEED", 0)), kMostPending);
    driver().streams.clear(); // whose queues are no more
  }
  *context = &driver().devices[size_t(device)];
  ++(*context)->retained;
  return Success;
}

EXPORTED int cuDevicePrimaryCtxRelease_v2(int device) {
  Turn turn;
  Device &its = driver().devices[size_t(device)];
  if (its.retained == 0)
    return InvalidContext;
  if (--its.retained == 0)
    current = current == &its ? nullptr : current;
  return Success;
}

EXPORTED int cuCtxSetCurrent(Device *context) {
  Turn turn;
  current = context;
  return !context || context->retained > 0 ? Success : InvalidContext;
}

/// CUDA_EMU_PEERS=none is a machine whose devices do not reach each other's memory.
static bool hasPeers() {
  const char *peers = std::getenv("CUDA_EMU_PEERS");
  return !peers || std::strcmp(peers, "none") != 0;
}

EXPORTED int cuDeviceCanAccessPeer(int *can, int device, int peer) {
  Turn turn;
  auto isThere = [](int number) { return number >= 0 && size_t(number) < driver().devices.size(); };
  *can = device != peer && hasPeers();
  return isThere(device) && isThere(peer) ? Success : InvalidDevice;
}

EXPORTED int cuCtxEnablePeerAccess(Device *peer, unsigned flags) {
  Turn turn;
  if (!current || !peer || peer->retained == 0)
    return InvalidContext;
  if (flags != 0 || peer == current)
    return InvalidValue;
  if (!hasPeers())
    return PeerAccessUnsupported;
  return driver().peers.insert({current, peer}).second ? Success : PeerAccessAlreadyEnabled;
}

//===- memory -----------------------------------------------------------------------------------------------------===//

EXPORTED int cuMemGetInfo_v2(size_t *free, size_t *total) {
  Turn turn;
  if (!current)
    return InvalidContext;
  *free = size_t(current->memory.freeBytes());
  *total = size_t(current->memory.capacity());
  return Success;
}

EXPORTED int cuMemAlloc_v2(Address *address, size_t bytes) {
  Turn turn;
  if (!current)
    return InvalidContext;
  if (!mayDisturb())
    return CaptureUnsupported;
  if (bytes == 0)
    return InvalidValue;
  try {
    void *block = current->memory.allocate(bytes);
    sim::Unlocked unlocked({{block, bytes, SLUICE_WRITE}});
    std::memset(block, 0xff, std::min(bytes, kMostPoisoned));
    *address = reinterpret_cast<Address>(block);
    current->blocks[*address] = bytes;
    return Success;
  } catch (const sim::Error &) {
    return OutOfMemory;
  }
}

EXPORTED int cuMemFree_v2(Address address) {
  Turn turn;
  if (!current)
    return InvalidContext;
  if (!mayDisturb())
    return CaptureUnsupported;
  if (!current->blocks.count(address))
    return InvalidValue;
  turn.finishAll(current);
  current->blocks.erase(address);
  current->memory.release(reinterpret_cast<void *>(address));
  return Success;
}

EXPORTED int cuMemHostAlloc(void **address, size_t bytes, unsigned flags) {
  Turn turn;
  if (!current)
    return InvalidContext;
  if (!mayDisturb())
    return CaptureUnsupported;
  if (bytes == 0 || flags != 1) // of all contexts
    return InvalidValue;
  constexpr size_t kPage = 4096;
  *address = std::aligned_alloc(kPage, (bytes + kPage - 1) / kPage * kPage);
  if (!*address)
    return OutOfMemory;
  std::memset(*address, 0xff, bytes);
  driver().pinned[reinterpret_cast<uintptr_t>(*address)] = bytes;
  return Success;
}

EXPORTED int cuMemFreeHost(void *address) {
  Turn turn;
  if (!mayDisturb())
    return CaptureUnsupported;
  if (driver().pinned.erase(reinterpret_cast<uintptr_t>(address)) == 0)
    return InvalidValue;
  turn.finishAll(current);
  std::free(address);
  return Success;
}

EXPORTED int cuMemsetD8Async(Address to, unsigned char value, size_t bytes, Stream *stream) {
  Turn turn;
  if (!current || !isOf(*current, to, bytes))
    return InvalidValue;
  return enqueue(stream, [=] {
    sim::Unlocked unlocked({bufferAt(to, bytes)});
    std::memset(reinterpret_cast<void *>(to), value, bytes);
  });
}

/// Copies that were put into streams so far: "direct" and "staged" ones from one device to another; "pinned" ones, from and to
/// memory of the host that the driver allocated, and "pageable" ones of other memory, for which a real driver keeps the caller
/// waiting.
EXPORTED int64_t cuda_emu_copies(const char *kind) {
  Turn turn;
  return driver().copies[kind];
}

/// Puts a copy from or to the host's memory into a stream.
template <typename Work> static Status enqueueCopy(Stream *stream, const void *host, size_t bytes, Work work) {
  bool pinned = isPinned(host, bytes);
  if (stream && stream->capture && !pinned)
    return spoil(stream, CaptureUnsupported);
  ++driver().copies[pinned ? "pinned" : "pageable"];
  return enqueue(stream, work);
}

EXPORTED int cuMemcpyHtoDAsync_v2(Address to, const void *from, size_t bytes, Stream *stream) {
  Turn turn;
  if (!isOfAny(to, bytes))
    return InvalidValue;
  return enqueueCopy(stream, from, bytes, [=] {
    sim::Unlocked unlocked({bufferAt(to, bytes)});
    std::memcpy(reinterpret_cast<void *>(to), from, bytes);
  });
}

EXPORTED int cuMemcpyDtoHAsync_v2(void *to, Address from, size_t bytes, Stream *stream) {
  Turn turn;
  if (!isOfAny(from, bytes))
    return InvalidValue;
  return enqueueCopy(stream, to, bytes, [=] {
    sim::Unlocked unlocked({bufferAt(from, bytes)});
    std::memcpy(to, reinterpret_cast<const void *>(from), bytes);
  });
}

static int copyOnDevices(Device *target, Address to, Device *source, Address from, size_t bytes, Stream *stream) {
  if (!target || !source || !isOf(*target, to, bytes) || !isOf(*source, from, bytes))
    return InvalidValue;
  return enqueue(stream, [=] {
    sim::Unlocked unlocked({bufferAt(to, bytes), bufferAt(from, bytes)});
    std::memmove(reinterpret_cast<void *>(to), reinterpret_cast<const void *>(from), bytes);
  });
}

EXPORTED int cuMemcpyDtoDAsync_v2(Address to, Address from, size_t bytes, Stream *stream) {
  Turn turn;
  return copyOnDevices(current, to, current, from, bytes, stream);
}

EXPORTED int cuMemcpyPeerAsync(Address to, Device *target, Address from, Device *source, size_t bytes, Stream *stream) {
  Turn turn;
  ++driver().copies[target == source || driver().peers.count({target, source}) ? "direct" : "staged"];
  return copyOnDevices(target, to, source, from, bytes, stream);
}

//===- streams and events -----------------------------------------------------------------------------------------===//

EXPORTED int cuStreamCreate(Stream **stream, unsigned) {
  Turn turn;
  if (!current)
    return InvalidContext;
  *stream = new Stream{current, driver().scheduler->addQueue()};
  driver().streams.insert(*stream);
  return Success;
}

/// CUDA_EMU_FAULT=700 is the status of all work that anybody waits for, which would be that of an illegal address.
static int statusOfWork() { return int(setting("CUDA_EMU_FAULT", Success)); }

EXPORTED int cuStreamSynchronize(Stream *stream) {
  Turn turn;
  if (!current || !stream || stream->device != current)
    return InvalidContext;
  if (stream->capture)
    return spoil(stream, CaptureUnsupported);
  if (!mayDisturb())
    return CaptureUnsupported;
  turn.finish(*stream);
  return statusOfWork();
}

EXPORTED int cuStreamDestroy_v2(Stream *stream) {
  Turn turn;
  if (!stream)
    return InvalidHandle;
  if (!mayDisturb())
    return CaptureUnsupported;
  turn.finish(*stream);
  driver().streams.erase(stream);
  delete stream;
  return Success;
}

EXPORTED int cuStreamWaitEvent(Stream *stream, Event *event, unsigned) {
  Turn turn;
  if (!current || !stream || !event || stream->device != current)
    return InvalidHandle;
  if (stream->capture)
    return spoil(stream, CaptureIsolation);
  if (event->recorded)
    driver().scheduler->wait(stream->queue, *event->recorded);
  return Success;
}

/// CUDA_EMU_FAULT is that of a stream which failed, and runs no host function any more.
EXPORTED int cuLaunchHostFunc(Stream *stream, void (*function)(void *), void *data) {
  Turn turn;
  return enqueue(stream, [=] {
    if (statusOfWork() == Success)
      function(data);
  });
}

EXPORTED int cuStreamWaitValue64_v2(Stream *stream, Address place, uint64_t number, unsigned flags) {
  constexpr unsigned kNoLess = 0;
  Turn turn;
  if (!current || !stream || stream->device != current)
    return InvalidHandle;
  if (stream->capture)
    return spoil(stream, CaptureUnsupported);
  auto *word = reinterpret_cast<uint64_t *>(place);
  if (flags != kNoLess || place % sizeof *word != 0 || !isPinned(word, sizeof *word))
    return InvalidValue;
  driver().scheduler->waitUntil(stream->queue, [=] { return int64_t(std::atomic_ref(*word).load() - number) >= 0; });
  return Success;
}

EXPORTED int cuEventCreate(Event **event, unsigned flags) {
  constexpr unsigned kWithoutTimes = 2;
  Turn turn;
  if (!current)
    return InvalidContext;
  bool hasTimes = !(flags & kWithoutTimes);
  if (hasTimes && setting("CUDA_EMU_TIMELESS", 0))
    return InvalidValue;
  *event = new Event{current, hasTimes};
  return Success;
}

EXPORTED int cuEventDestroy_v2(Event *event) {
  Turn turn;
  delete event;
  return Success;
}

EXPORTED int cuEventRecord(Event *event, Stream *stream) {
  Turn turn;
  if (!event || !stream || event->device != stream->device || stream->device != current)
    return InvalidHandle;
  if (stream->capture)
    return spoil(stream, CaptureUnsupported);
  event->recorded = driver().scheduler->end(stream->queue);
  if (event->hasTimes) {
    event->seconds = std::make_shared<double>(0);
    event->recorded = driver().scheduler->enqueue(stream->queue, [at = event->seconds] { *at = clockSeconds(); });
  }
  return Success;
}

EXPORTED int cuEventQuery(Event *event) {
  Turn turn;
  if (!mayDisturb())
    return CaptureUnsupported;
  if (!event->recorded || driver().scheduler->isDone(*event->recorded))
    return statusOfWork();
  driver().scheduler->runAny(); // time passes
  return NotReady;
}

EXPORTED int cuEventSynchronize(Event *event) {
  Turn turn;
  if (!mayDisturb())
    return CaptureUnsupported;
  if (event->recorded)
    turn.finish(*event->recorded);
  return statusOfWork();
}

EXPORTED int cuEventElapsedTime(float *milliseconds, Event *from, Event *to) {
  Turn turn;
  if (!current)
    return InvalidContext;
  auto isTimed = [](const Event *event) { return event && event->hasTimes && event->recorded; };
  auto isDone = [](const Event *event) { return driver().scheduler->isDone(*event->recorded); };
  if (!isTimed(from) || !isTimed(to) || from->device != to->device)
    return InvalidHandle;
  if (!isDone(from) || !isDone(to))
    return NotReady;
  *milliseconds = float(1e3 * (*to->seconds - *from->seconds));
  return Success;
}

//===- modules and launches ---------------------------------------------------------------------------------------===//

/// An ELF file tells its own size: the end of its section headers.
static size_t sizeOfElf(const char *image) {
  uint64_t sections;
  uint16_t bytes, count;
  std::memcpy(&sections, image + 40, sizeof sections);
  std::memcpy(&bytes, image + 58, sizeof bytes);
  std::memcpy(&count, image + 60, sizeof count);
  return sections + size_t(bytes) * count;
}

/// Of PTX as NVIDIA's compiler writes it, which nothing here runs: of a later version, or else for a newer device.
static Status refusalOf(const char *version) {
  constexpr double kNewestPtx = 9.0; // CUDA 13.0
  return std::atof(version) > kNewestPtx ? UnsupportedPtx : InvalidPtx;
}

EXPORTED int cuModuleLoadData(Module **module, const void *image) {
  Turn turn;
  if (!current)
    return InvalidContext;
  if (!mayDisturb())
    return CaptureUnsupported;
  const char *bytes = static_cast<const char *>(image);
  static constexpr char kPtx[] = ".version ";
  if (std::strncmp(bytes, kPtx, sizeof kPtx - 1) == 0)
    return refusalOf(bytes + sizeof kPtx - 1);
  if (std::memcmp(bytes,
                  "\x7f"
                  "ELF",
                  4) != 0)
    return InvalidImage;
  std::string log;
  size_t size = sizeOfElf(bytes);
  std::string architecture = bytes + size;
  bool isPtx = architecture.rfind("compute_", 0) == 0;
  int version = std::atoi(architecture.c_str() + std::strlen(isPtx ? "compute_" : "sm_"));
  if (isPtx && setting("CUDA_EMU_OLD_PTX", 0))
    return UnsupportedPtx;
  if (isPtx && version > 10 * kMajor + kMinor)
    return InvalidPtx;
  if (!isPtx && (version / 10 != kMajor || version % 10 > kMinor))
    return NoBinary;
  void *library = test::loadForHost(std::string(bytes, size), log);
  if (!library)
    return InvalidImage;
  *module = new Module{current, library};
  return Success;
}

EXPORTED int cuModuleUnload(Module *module) {
  Turn turn;
  if (!module || module->device != current)
    return InvalidHandle;
  delete module;
  return Success;
}

EXPORTED int cuModuleGetFunction(Function **function, Module *module, const char *name) {
  Turn turn;
  if (!module || module->device != current)
    return InvalidHandle;
  std::string suffix = name;
  auto launch =
      reinterpret_cast<decltype(Function::launch)>(dlsym(module->library, ("cuda_emu_launch_" + suffix).c_str()));
  auto sizes = reinterpret_cast<const unsigned *(*)()>(dlsym(module->library, ("cuda_emu_sizes_" + suffix).c_str()));
  if (!launch || !sizes)
    return NotFound;
  auto bounds = reinterpret_cast<unsigned (*)()>(dlsym(module->library, ("cuda_emu_bounds_" + suffix).c_str()));
  *function = &driver().functions.emplace_back(Function{module, launch, sizes(), bounds ? bounds() : kMostThreads});
  return Success;
}

EXPORTED int cuFuncSetAttribute(Function *function, int attribute, int value) {
  constexpr int kDynamicSharedBytes = 8;
  Turn turn;
  if (!function || function->module->device != current)
    return InvalidHandle;
  if (attribute != kDynamicSharedBytes || value < 0 || unsigned(value) > kMostSharedBytes)
    return InvalidValue;
  function->mostSharedBytes = unsigned(value);
  return Success;
}

EXPORTED int cuLaunchKernel(Function *function, unsigned gridX, unsigned gridY, unsigned gridZ, unsigned blockX,
                            unsigned blockY, unsigned blockZ, unsigned shared, Stream *stream, void **arguments,
                            void **extra) {
  Turn turn;
  if (!function || !stream || function->module->device != stream->device)
    return InvalidHandle;
  if (gridX == 0 || gridX > 0x7fffffffu || gridY != 1 || gridZ != 1 || blockX == 0 || blockX > function->mostThreads ||
      blockY != 1 || blockZ != 1 || shared > function->mostSharedBytes || extra)
    return InvalidValue;
  std::vector<std::string> values;
  for (unsigned i = 0; i < function->sizes[0]; ++i)
    values.emplace_back(static_cast<const char *>(arguments[i]), function->sizes[i + 1]);
  Device *device = current;
  return enqueue(stream, [=] {
    std::vector<std::string> copies = values;
    std::vector<void *> addresses;
    for (std::string &copy : copies)
      addresses.push_back(copy.data());
    sim::Unlocked unlocked(device->everything());
    cuda_emu::cuda_emu_give_shared_bytes(shared);
    function->launch({gridX}, {blockX}, addresses.data());
  });
}
