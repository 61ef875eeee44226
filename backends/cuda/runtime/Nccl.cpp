#include "backends/cuda/runtime/Nccl.h"

#include <dlfcn.h>

namespace sluice::cuda {

static constexpr int kOldestNccl = 21400; // the first with nonblocking communicators

static std::string ncclVersionText(int version) {
  int ofMajor = version < 10000 ? 1000 : 10000; // until 2.8
  return std::to_string(version / ofMajor) + "." + std::to_string(version % ofMajor / 100) + "." +
         std::to_string(version % 100);
}

/// Throws if the library lacks a function.
static Nccl bindNccl(void *library, const std::string &path) {
  Nccl nccl;
  nccl.path = path;
  auto find = [&](auto &function, const char *symbol) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, symbol));
    if (!function)
      throw Error(SLUICE_UNSUPPORTED, path + " has no " + symbol + ", which NCCL 2.14 has");
  };
  find(nccl.version, "ncclGetVersion");
  int version = 0;
  if (nccl.version(&version) != NcclResult::Success || version < kOldestNccl)
    throw Error(SLUICE_UNSUPPORTED, path + " is NCCL " + ncclVersionText(version) + ", and " +
                                        ncclVersionText(kOldestNccl) + " or later is needed");
  nccl.versionText = ncclVersionText(version);
#define SLUICE_FIND(member, symbol, parameters) find(nccl.member, symbol);
  SLUICE_FOR_EACH_NCCL_FUNCTION(SLUICE_FIND)
#undef SLUICE_FIND
  find(nccl.resultText, "ncclGetErrorString");
  find(nccl.lastError, "ncclGetLastError");
  return nccl;
}

LibrarySearch Nccl::search() { return {"SLUICE_NCCL", {"libnccl.so.2"}, {"nccl"}}; }

static Nccl loadNccl() {
  LibrarySearch search = Nccl::search();
  for (const std::string &path : search.places())
    if (void *library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL))
      return bindNccl(library, path);
  throw Error(SLUICE_UNSUPPORTED, "NCCL, through which CUDA devices exchange, was not found (looked for " +
                                      search.listed() +
                                      "): install it, or the Python package nvidia-nccl, or name the library in "
                                      "SLUICE_NCCL");
}

const Nccl &Nccl::get() {
  static const Nccl nccl = loadNccl();
  return nccl;
}

/// Failures of the machine (memory, a device or the system) are exhaustion errors; unknown results are internal errors.
static sluice_status statusOf(NcclResult result) {
  switch (result) {
  case NcclResult::RemoteError:
    return SLUICE_PEER_LOST;
  case NcclResult::InvalidArgument:
  case NcclResult::InvalidUsage:
    return SLUICE_USAGE;
  case NcclResult::CudaError:
  case NcclResult::SystemError:
    return SLUICE_EXHAUSTED;
  case NcclResult::Success:
  case NcclResult::InProgress:
  case NcclResult::InternalError:
    break;
  }
  return SLUICE_INTERNAL;
}

Error Nccl::errorOf(NcclResult result, NcclCommunicator communicator, const std::string &what) const {
  std::string text = resultText(result), last = lastError(communicator);
  return {statusOf(result), what + ": NCCL " + versionText + ": " + text + (last.empty() ? "" : ": " + last)};
}

} // namespace sluice::cuda
