// What the CUDA backend is asked to compile, for one target: kernels become functions of CUDA C++, and these the code of
// each architecture.
#pragma once

#include "backends/cuda/compiler/GridKernel.h"
#include "backends/cuda/compiler/ModuleImage.h"
#include "backends/cuda/compiler/Nvrtc.h"
#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace sluice::cuda {

/// Architectures such as "sm_90", of a setting such as "arch=sm_80+sm_90"; none of "". Another setting is an error.
llvm::Expected<std::vector<std::string>> readArchitectures(llvm::StringRef settings);

class Session {
public:
  /// For none, the architectures are sm_80, sm_90, sm_100 and compute_80, as far as NVRTC has them. Fails where there is no NVRTC, or
  /// one without an architecture.
  static llvm::Expected<Session> begin(std::vector<std::string> architectures, int64_t capacity);

  const std::vector<std::string> &architectures() const { return architectures_; }
  int64_t capacity() const { return capacity_; }

  struct Prepared {
    std::string function; ///< of the image
    int64_t workspaceBytes;
  };
  mlir::FailureOr<Prepared> prepare(ir::KernelOp kernel);
  /// The image of all kernels.
  llvm::Expected<std::string> lower();

private:
  Session(Nvrtc nvrtc, std::vector<std::string> architectures, int64_t capacity)
      : nvrtc(std::move(nvrtc)), architectures_(std::move(architectures)), capacity_(capacity) {}

  std::vector<std::string> units() const;

  Nvrtc nvrtc;
  std::vector<std::string> architectures_;
  int64_t capacity_;
  ModuleImage image;
  std::vector<std::string> texts; // of the kernels
};

} // namespace sluice::cuda
