// The doubles of the CUDA driver, NCCL and cublasLt with one fault, selected by GPU_CHECK_FAULT. Functions missing here
// resolve to the doubles. When a block of memory is released, its size, and whether anything but kernels wrote to it, is
// written to the file GPU_CHECK_MEMORY.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <functional>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#define EXPORTED extern "C" __attribute__((visibility("default")))

namespace {

using Address = unsigned long long;

bool hasFault(const char *name) {
  const char *fault = std::getenv("GPU_CHECK_FAULT");
  return fault && std::strcmp(fault, name) == 0;
}

/// Calls the double's function.
template <typename... A> int call(const char *name, A... arguments) {
  return reinterpret_cast<int (*)(A...)>(dlsym(RTLD_NEXT, name))(arguments...);
}

/// Allocations on devices.
class Blocks {
public:
  void add(Address address, size_t bytes) {
    std::lock_guard lock(mutex);
    blocks[address] = {bytes, false};
  }
  void write(Address to) {
    std::lock_guard lock(mutex);
    auto behind = blocks.upper_bound(to);
    if (behind != blocks.begin())
      std::prev(behind)->second.isWritten = true;
  }
  void remove(Address address) {
    std::lock_guard lock(mutex);
    const char *path = std::getenv("GPU_CHECK_MEMORY");
    std::FILE *file = path ? std::fopen(path, "a") : nullptr;
    if (!file)
      return;
    std::fprintf(file, "%s %zu\n", blocks[address].isWritten ? "written" : "unwritten", blocks[address].bytes);
    std::fclose(file);
  }

private:
  struct Block {
    size_t bytes = 0;
    bool isWritten = false;
  };
  std::mutex mutex;
  std::map<Address, Block> blocks;
} memory;

} // namespace

EXPORTED int cuMemAlloc_v2(Address *address, size_t bytes) {
  bool isOff = hasFault("misaligned");
  int status = call("cuMemAlloc_v2", address, bytes + (isOff ? 64 : 0));
  *address += isOff && status == 0 ? 64 : 0;
  memory.add(*address, bytes);
  return status;
}

EXPORTED int cuMemFree_v2(Address address) {
  memory.remove(address);
  return call("cuMemFree_v2", address);
}

EXPORTED int cuMemsetD8Async(Address to, unsigned char value, size_t bytes, void *stream) {
  memory.write(to);
  return call("cuMemsetD8Async", to, value, bytes, stream);
}

EXPORTED int cuMemcpyHtoDAsync_v2(Address to, const void *from, size_t bytes, void *stream) {
  memory.write(to);
  return call("cuMemcpyHtoDAsync_v2", to, from, bytes, stream);
}

EXPORTED int cuEventSynchronize(void *event) {
  return hasFault("hasty_events") ? 0 : call("cuEventSynchronize", event);
}

EXPORTED int cuEventElapsedTime(float *milliseconds, void *from, void *to) {
  int status = call("cuEventElapsedTime", milliseconds, from, to);
  *milliseconds =
      hasFault("careless_times") && status != 0 ? 0 : *milliseconds * (hasFault("other_seconds") ? 1000 : 1);
  return hasFault("careless_times") ? 0 : status;
}

EXPORTED int cuFuncSetAttribute(void *function, int attribute, int value) {
  return hasFault("deaf_functions") ? 0 : call("cuFuncSetAttribute", function, attribute, value);
}

EXPORTED int cuStreamWaitEvent(void *stream, void *event, unsigned flags) {
  return hasFault("lost_waits") ? 0 : call("cuStreamWaitEvent", stream, event, flags);
}

EXPORTED int cuStreamWaitValue64_v2(void *stream, Address place, uint64_t number, unsigned flags) {
  return hasFault("lost_numbers") ? 0 : call("cuStreamWaitValue64_v2", stream, place, number, flags);
}

EXPORTED int cuLaunchHostFunc(void *stream, void (*function)(void *), void *data) {
  if (!hasFault("hasty_functions"))
    return call("cuLaunchHostFunc", stream, function, data);
  function(data);
  return 0;
}

EXPORTED int cuCtxSetCurrent(void *context) {
  return hasFault("kept_context") && !context ? 0 : call("cuCtxSetCurrent", context);
}

EXPORTED int cuStreamBeginCapture_v2(void *stream, int mode) {
  constexpr int kRelaxed = 2;
  if (hasFault("eager_captures"))
    return 0;
  return call("cuStreamBeginCapture_v2", stream, hasFault("relaxed_captures") ? kRelaxed : mode);
}

EXPORTED int cuGraphLaunch(void *executable, void *stream) {
  return hasFault("lost_graphs") ? 0 : call("cuGraphLaunch", executable, stream);
}

EXPORTED int cuStreamEndCapture(void *stream, void **graph) {
  return hasFault("eager_captures") ? 0 : call("cuStreamEndCapture", stream, graph);
}

EXPORTED int cuGraphInstantiateWithFlags(void **executable, void *graph, unsigned long long flags) {
  return hasFault("eager_captures") ? 0 : call("cuGraphInstantiateWithFlags", executable, graph, flags);
}

EXPORTED int cuGraphDestroy(void *graph) { return hasFault("eager_captures") ? 0 : call("cuGraphDestroy", graph); }

EXPORTED int ncclAllReduce(const void *send, void *receive, size_t count, int type, int reduction, void *communicator,
                           void *stream) {
  return hasFault("lost_exchanges")
             ? 0
             : call("ncclAllReduce", send, receive, count, type, reduction, communicator, stream);
}

EXPORTED int ncclCommGetAsyncError(void *communicator, int *error) {
  constexpr int kInProgress = 7;
  int result = call("ncclCommGetAsyncError", communicator, error);
  *error = hasFault("forgotten_errors") && *error != kInProgress ? 0 : *error;
  return result;
}

EXPORTED int ncclCommAbort(void *communicator) {
  return hasFault("endless_communicators") ? 6 : call("ncclCommAbort", communicator);
}

/// Work that "late_products" delays until a copy to the host.
static std::function<void()> putOff;

EXPORTED int cuMemcpyDtoHAsync_v2(void *to, Address from, size_t bytes, void *stream) {
  if (auto work = std::exchange(putOff, nullptr))
    work();
  return call("cuMemcpyDtoHAsync_v2", to, from, bytes, stream);
}

EXPORTED int cuModuleLoadData(void **module, const void *image) {
  bool isText = *static_cast<const char *>(image) == '.';
  return isText && hasFault("credulous_modules") ? 0 : call("cuModuleLoadData", module, image);
}

EXPORTED int cuLaunchKernel(void *function, unsigned gridX, unsigned gridY, unsigned gridZ, unsigned blockX,
                            unsigned blockY, unsigned blockZ, unsigned shared, void *stream, void **arguments,
                            void **extra) {
  return hasFault("lost_launches") ? 0
                                   : call("cuLaunchKernel", function, gridX, gridY, gridZ, blockX, blockY, blockZ,
                                          shared, stream, arguments, extra);
}

EXPORTED int cuCtxEnablePeerAccess(void *peer, unsigned flags) {
  int status = call("cuCtxEnablePeerAccess", peer, flags);
  return hasFault("forgotten_peers") ? 0 : status;
}

//===- cublasLt ---------------------------------------------------------------------------------------------------===//

namespace {

struct Extent {
  int type;
  size_t elements;
};
std::map<void *, Extent> extents; // of layouts

/// Truncates results to 8 bits, and clears the last bit of two-byte floats.
void roughen(void *d, const Extent &extent, void *stream) {
  bool isWide = extent.type == 0;
  std::vector<uint16_t> words(extent.elements * (isWide ? 2 : 1));
  call("cuMemcpyDtoHAsync_v2", static_cast<void *>(words.data()), Address(d), 2 * words.size(), stream);
  call("cuStreamSynchronize", stream);
  for (size_t i = 0; i < words.size(); ++i)
    words[i] = !isWide ? words[i] & ~1 : i % 2 == 0 ? 0 : words[i];
  call("cuMemcpyHtoDAsync_v2", Address(d), static_cast<const void *>(words.data()), 2 * words.size(), stream);
  call("cuStreamSynchronize", stream);
}

} // namespace

EXPORTED int cublasLtMatrixLayoutCreate(void **layout, int type, uint64_t rows, uint64_t columns, int64_t leading) {
  if (hasFault("dense_layouts"))
    leading = int64_t(rows);
  int status = call("cublasLtMatrixLayoutCreate", layout, type, rows, columns, leading);
  extents[*layout] = {type, size_t(leading) * columns};
  return status;
}

EXPORTED int cublasLtMatrixLayoutSetAttribute(void *layout, int attribute, const void *value, size_t bytes) {
  constexpr int kStride = 6;
  return hasFault("dense_batches") && attribute == kStride
             ? 0
             : call("cublasLtMatrixLayoutSetAttribute", layout, attribute, value, bytes);
}

EXPORTED int cublasLtMatmulDescSetAttribute(void *description, int attribute, const void *value, size_t bytes) {
  constexpr int kTransposeA = 3, kTransposeB = 4, kEpilogue = 7;
  bool isLost = (hasFault("plain_operands") && (attribute == kTransposeA || attribute == kTransposeB)) ||
                (hasFault("plain_epilogues") && attribute == kEpilogue);
  return isLost ? 0 : call("cublasLtMatmulDescSetAttribute", description, attribute, value, bytes);
}

EXPORTED int cublasLtMatmulPreferenceSetAttribute(void *preference, int attribute, const void *value, size_t bytes) {
  constexpr int kWorkspace = 1, kAlignmentA = 5;
  static const uint64_t kMuch = 1 << 30;
  if (hasFault("deaf_preferences") && attribute >= kAlignmentA)
    return 0;
  const void *asked = hasFault("greedy_algorithms") && attribute == kWorkspace ? &kMuch : value;
  return call("cublasLtMatmulPreferenceSetAttribute", preference, attribute, asked, bytes);
}

EXPORTED int cublasLtMatmulAlgoGetHeuristic(void *handle, void *description, void *a, void *b, void *c, void *d,
                                            void *preference, int wanted, void *choices, int *found) {
  int status =
      call("cublasLtMatmulAlgoGetHeuristic", handle, description, a, b, c, d, preference, wanted, choices, found);
  if (hasFault("credulous_heuristics"))
    *found = 1, status = 0;
  return status;
}

EXPORTED int cublasLtMatmulAlgoCheck(void *handle, void *description, void *a, void *b, void *c, void *d,
                                     const void *algorithm, void *result) {
  constexpr int kNotSupported = 15;
  return hasFault("refusing_checks")
             ? kNotSupported
             : call("cublasLtMatmulAlgoCheck", handle, description, a, b, c, d, algorithm, result);
}

EXPORTED int cublasLtMatmul(void *handle, void *description, const void *alpha, const void *a, void *layoutA,
                            const void *b, void *layoutB, const void *beta, const void *c, void *layoutC, void *d,
                            void *layoutD, const void *algorithm, void *workspace, size_t workspaceBytes,
                            void *stream) {
  static const float kOne[2] = {1, 0};
  static const double kZero = 0;
  static bool isSecond = true;
  isSecond = !isSecond;
  if (isSecond && hasFault("every_other_product"))
    return 0;
  beta = hasFault("read_results") ? kOne : hasFault("forgotten_results") ? static_cast<const void *>(&kZero) : beta;
  if (hasFault("products_elsewhere"))
    call("cuStreamCreate", &stream, 1u);
  auto multiply = [=](const void *alpha, const void *beta) {
    return call("cublasLtMatmul", handle, description, alpha, a, layoutA, b, layoutB, beta, c, layoutC, d, layoutD,
                algorithm, workspace, workspaceBytes, stream);
  };
  if (hasFault("late_products")) {
    putOff = [=] { multiply(kOne, &kZero); };
    return 0;
  }
  int status = multiply(alpha, beta);
  if (hasFault("rough_products"))
    roughen(d, extents[layoutD], stream);
  return hasFault("swallowed_refusals") ? 0 : status;
}
