// NVRTC, NVIDIA's compiler from CUDA C++ to device code, loaded as a library on first use. It requires neither a device
// nor a driver.
#pragma once

#include "backends/cuda/libraries/LibrarySearch.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace sluice::cuda {

/// Resources that a kernel uses, as reported by the assembler.
struct KernelResources {
  std::string name;
  int registers = 0;   ///< of a thread
  int spillStores = 0; ///< spilled bytes
  int spillLoads = 0;  ///< bytes
  int stack = 0;       ///< bytes of a thread's local memory
  int shared = 0;      ///< shared memory of a block, static
};

struct DeviceCode {
  std::string bytes; ///< a cubin, or PTX with a terminating zero
  std::string ptx;   ///< if wanted; empty: NVRTC gives none for this architecture
  std::vector<KernelResources> kernels;
  std::string log;
};

class Nvrtc {
public:
  /// The first library of `search` that loads. The error lists the searched locations.
  static llvm::Expected<Nvrtc> load();
  /// Searches SLUICE_NVRTC, a toolkit, and the Python package nvidia-cuda-nvrtc.
  static LibrarySearch search();

  /// E.g. "13.0".
  const std::string &version() const { return version_; }
  /// Supported architectures: "sm_90" and others. Each has a "compute_90", whose code is PTX, which drivers compile for
  /// newer devices.
  std::vector<std::string> architectures() const;
  bool has(const std::string &architecture) const;
  /// Compiles a source without includes for an architecture such as "sm_90". The error is the compiler's log.
  /// Thread-safe. `options` are additional compiler options.
  llvm::Expected<DeviceCode> compile(const std::string &text, const std::string &architecture,
                                     llvm::ArrayRef<const char *> options = {}, bool wantsPtx = false) const;

private:
  struct Functions;
  explicit Nvrtc(const Functions *functions) : functions(functions) {}

  const Functions *functions;
  std::string version_;
};

} // namespace sluice::cuda
