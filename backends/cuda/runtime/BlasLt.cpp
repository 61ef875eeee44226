#include "backends/cuda/runtime/BlasLt.h"

#include "backends/cuda/runtime/Error.h"

#include <dlfcn.h>
#include <optional>

namespace sluice::cuda {

// Statuses that callers distinguish: out of memory, device lost, or mismatch of library, driver and device.
static constexpr int kNotInitialized = 1, kAllocationFailed = 3, kArchitectureMismatch = 8, kExecutionFailed = 13;

static std::string versionText(size_t version) {
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

/// Sets `problem` to the error, if any.
static std::optional<BlasLt> open(const std::string &path, std::string &problem) {
  void *library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    problem = dlerror();
    return std::nullopt;
  }
  BlasLt blas;
#define SLUICE_FIND(member, symbol, parameters)                                                                        \
  blas.member = reinterpret_cast<decltype(blas.member)>(dlsym(library, symbol));                                       \
  if (!blas.member) {                                                                                                  \
    problem = path + " has no " symbol;                                                                                \
    return std::nullopt;                                                                                               \
  }
  SLUICE_FOR_EACH_BLAS_FUNCTION(SLUICE_FIND)
#undef SLUICE_FIND
  auto version = reinterpret_cast<size_t (*)()>(dlsym(library, "cublasLtGetVersion"));
  blas.statusName = reinterpret_cast<decltype(blas.statusName)>(dlsym(library, "cublasLtGetStatusName"));
  blas.version = version ? versionText(version()) : "of an unknown version";
  return blas;
}

LibrarySearch BlasLt::search() {
  return {"SLUICE_CUBLASLT", {"libcublasLt.so.13", "libcublasLt.so.12"}, {"cu13", "cublas"}};
}

static std::optional<BlasLt> loadBlasLt() {
  LibrarySearch search = BlasLt::search();
  std::string problem;
  for (const std::string &place : search.places())
    if (std::optional<BlasLt> found = open(place, problem))
      return found;
  if (!search.named().empty())
    throw Error(SLUICE_UNSUPPORTED, "SLUICE_CUBLASLT: " + problem);
  return std::nullopt;
}

const BlasLt *BlasLt::find() {
  static const std::optional<BlasLt> found = loadBlasLt();
  return found ? &*found : nullptr;
}

std::string BlasLt::textOf(int status) const {
  const char *name = statusName ? statusName(status) : nullptr;
  return (name ? name : "cublasLt's status") + (" (" + std::to_string(status) + ")");
}

void BlasLt::check(int status, const std::string &what) const {
  if (status == 0)
    return;
  bool isGone = status == kAllocationFailed || status == kExecutionFailed;
  bool isUnfit = status == kNotInitialized || status == kArchitectureMismatch;
  throw Error(isGone ? SLUICE_EXHAUSTED : isUnfit ? SLUICE_UNSUPPORTED : SLUICE_INTERNAL, what + ": " + textOf(status));
}

} // namespace sluice::cuda
