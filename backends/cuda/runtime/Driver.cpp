#include "backends/cuda/runtime/Driver.h"

#include "backends/cuda/runtime/Error.h"

#include <algorithm>
#include <cstdlib>
#include <dlfcn.h>
#include <iterator>

namespace sluice::cuda {

static constexpr int kOldestVersion = 12000;

// Statuses that callers distinguish: out of memory, unavailable, or device lost.
static constexpr int kOutOfMemory = 2, kNoDevice = 100, kNoBinary = 209, kPtxTooNew = 222, kNotFound = 500;
// Statuses after which the device is lost: every later call returns them. Faults of memory and links:
// ECC_UNCORRECTABLE, NVLINK_UNCORRECTABLE, CONTAINED. Faults of kernels, whose numbers are not contiguous:
// ILLEGAL_ADDRESS, LAUNCH_TIMEOUT, ASSERT, HARDWARE_STACK_ERROR, ILLEGAL_INSTRUCTION, MISALIGNED_ADDRESS,
// INVALID_ADDRESS_SPACE, INVALID_PC, LAUNCH_FAILED, TENSOR_MEMORY_LEAK.
static constexpr int kLost[] = {214, 220, 226, 700, 702, 710, 714, 715, 716, 717, 718, 719, 721};

static std::string versionText(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

static Driver load() {
  const char *named = std::getenv("SLUICE_CUDA_DRIVER");
  std::string path = named && *named ? named : "libcuda.so.1";
  void *library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library)
    throw Error(SLUICE_UNSUPPORTED, "there is no driver of CUDA devices here: " + std::string(dlerror()));
  Driver driver;
#define SLUICE_FIND(member, symbol, parameters)                                                                        \
  driver.member = reinterpret_cast<decltype(driver.member)>(dlsym(library, symbol));                                   \
  if (!driver.member)                                                                                                  \
    throw Error(SLUICE_UNSUPPORTED, path + " has no " symbol ", which drivers for CUDA 12 have");
  SLUICE_FOR_EACH_DRIVER_FUNCTION(SLUICE_FIND)
#undef SLUICE_FIND
  int version = 0;
  driver.check(driver.version(&version), "the version of " + path);
  if (version < kOldestVersion)
    throw Error(SLUICE_UNSUPPORTED, path + " is for CUDA " + versionText(version) + ", and " +
                                        versionText(kOldestVersion) + " or later is needed");
  driver.check(driver.init(0), path + " does not begin");
  return driver;
}

const Driver &Driver::get() {
  static const Driver driver = load();
  return driver;
}

std::string Driver::textOf(int status) const {
  const char *name = nullptr;
  return errorName(status, &name) == 0 && name ? name : "CUDA error " + std::to_string(status);
}

void Driver::check(int status, const std::string &what) const {
  if (status == 0)
    return;
  bool isLost = std::find(std::begin(kLost), std::end(kLost), status) != std::end(kLost);
  bool isGone = status == kOutOfMemory || isLost;
  bool isAbsent = status == kNoDevice || status == kNoBinary || status == kPtxTooNew || status == kNotFound;
  throw Error(isGone     ? SLUICE_EXHAUSTED
              : isAbsent ? SLUICE_UNSUPPORTED
                         : SLUICE_INTERNAL,
              what + ": " + textOf(status));
}

} // namespace sluice::cuda
