// NVIDIA's compiler from CUDA C++ to the code of a device, as a library that is looked for when it is needed. It needs
// neither a device nor a driver.
#pragma once

#include "backends/cuda/libraries/LibrarySearch.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace sluice::cuda {

/// What a kernel needs of a multiprocessor, as the assembler says.
struct KernelResources {
  std::string name;
  int registers = 0;   ///< of a thread
  int spillStores = 0; ///< bytes that do not fit into them
  int spillLoads = 0;  ///< bytes
  int stack = 0;       ///< bytes of a thread's local memory
  int shared = 0;      ///< bytes of a block, known to the compiler
};

struct DeviceCode {
  std::string bytes; ///< a cubin, or PTX with the zero behind it
  std::vector<KernelResources> kernels;
  std::string log;
};

class Nvrtc {
public:
  /// The first library of `search` that the loader takes. The error says where it was looked for.
  static llvm::Expected<Nvrtc> load();
  /// What SLUICE_NVRTC names, or a toolkit brings, or the Python package nvidia-cuda-nvrtc.
  static LibrarySearch search();

  /// As "13.0".
  const std::string &version() const { return version_; }
  /// That it has code for: "sm_90" and others. For each there is a "compute_90", whose code is PTX, which drivers compile for
  /// whatever is newer.
  std::vector<std::string> architectures() const;
  bool has(const std::string &architecture) const;
  /// Code of a text without includes for an architecture such as "sm_90". The error is what the compiler says. Threads may
  /// compile at once. `options` are more of the compiler's own.
  llvm::Expected<DeviceCode> compile(const std::string &text, const std::string &architecture,
                                     llvm::ArrayRef<const char *> options = {}) const;

private:
  struct Functions;
  explicit Nvrtc(const Functions *functions) : functions(functions) {}

  const Functions *functions;
  std::string version_;
};

} // namespace sluice::cuda
