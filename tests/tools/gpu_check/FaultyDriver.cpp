// The double of the CUDA driver with one fault, which GPU_CHECK_FAULT names. Functions that it does not have are found in
// the double behind it.
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>

#define EXPORTED extern "C" __attribute__((visibility("default")))

namespace {

using Address = unsigned long long;

bool hasFault(const char *name) {
  const char *fault = std::getenv("GPU_CHECK_FAULT");
  return fault && std::strcmp(fault, name) == 0;
}

/// The double's function.
template <typename... A> int call(const char *name, A... arguments) {
  return reinterpret_cast<int (*)(A...)>(dlsym(RTLD_NEXT, name))(arguments...);
}

} // namespace

EXPORTED int cuMemAlloc_v2(Address *address, size_t bytes) {
  bool isOff = hasFault("misaligned");
  int status = call("cuMemAlloc_v2", address, bytes + (isOff ? 64 : 0));
  *address += isOff && status == 0 ? 64 : 0;
  return status;
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
