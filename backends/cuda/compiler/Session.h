// The CUDA backend's compile session for one target: kernels become functions of CUDA C++, which are compiled for each
// architecture.
#pragma once

#include "backends/cuda/compiler/kernels/GridKernel.h"
#include "backends/cuda/compiler/nvrtc/KernelTexts.h"
#include "backends/cuda/compiler/nvrtc/ModuleImage.h"
#include "backends/cuda/compiler/nvrtc/Nvrtc.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace sluice::cuda {

struct Settings {
  /// E.g. "sm_90". Default: those of sm_80, sm_90, sm_100 and compute_80 that NVRTC supports.
  std::vector<std::string> architectures;
  /// Which products run in a library: `large` selects those with at least this many flops at capacity.
  double libraryFlops = kLargeProduct;
  bool timed = false; ///< time a library's algorithms when code is loaded, see runtime/AlgorithmTiming.h

  /// Some microseconds of device work. Below this bound, a separate launch and the lost fusion cost more than a
  /// library's better kernel saves.
  static constexpr double kLargeProduct = 1 << 28;
};

/// Parses settings such as "arch=sm_80+sm_90,library=all,algorithms=timed". library is all, large or none;
/// algorithms is timed or fixed. Any other setting is an error.
llvm::Expected<Settings> readSettings(llvm::StringRef text);

/// The resources of functions, as compiled for an architecture.
struct CompiledUnit {
  std::string architecture;
  std::vector<KernelResources> functions;
};

class Session {
public:
  /// Fails if NVRTC is missing, does not support an architecture, or if an architecture lacks a requested feature. The
  /// texts of kernels go to the folder `kernelTexts`; empty: none.
  static llvm::Expected<Session> begin(Settings settings, int64_t capacity, sluice_math math = SLUICE_MATH_STRICT,
                                       std::string kernelTexts = "");

  const std::vector<std::string> &architectures() const { return settings.architectures; }
  /// Settings of product kernels.
  GridOptions options() const;
  /// Whether a library's algorithms are timed.
  bool timesAlgorithms() const { return settings.timed; }
  int64_t capacity() const { return capacity_; }

  struct Prepared {
    std::string function; ///< of the image
    int64_t workspaceBytes;
    double lanes; ///< see GridKernel
  };
  /// `textName`: the name of the kernel's texts.
  mlir::FailureOr<Prepared> prepare(ir::KernelOp kernel, llvm::StringRef textName = "");
  /// Whether a library runs a kernel that consists of these ops and has the results `kept`.
  bool isForLibrary(llvm::ArrayRef<mlir::Operation *> ops, mlir::ValueRange kept) const {
    return libraryProductOf(ops, kept).has_value();
  }
  /// The image of all kernels.
  llvm::Expected<std::string> lower();
  /// The compiled code of the image; code for one architecture may consist of several units.
  const std::vector<CompiledUnit> &compiled() const { return compiled_; }

private:
  Session(Nvrtc nvrtc, Settings settings, int64_t capacity, sluice_math math, std::string kernelTexts)
      : nvrtc(std::move(nvrtc)), settings(std::move(settings)), capacity_(capacity), math(math),
        kernelTexts(std::move(kernelTexts)) {}

  std::optional<LibraryProduct> libraryProductOf(llvm::ArrayRef<mlir::Operation *> ops, mlir::ValueRange kept) const;
  std::vector<std::string> units() const;

  Nvrtc nvrtc;
  Settings settings;
  int64_t capacity_;
  sluice_math math;
  ModuleImage image;
  std::vector<std::string> texts; // of the kernels
  KernelTexts kernelTexts;
  llvm::StringMap<int> sharedBytes; // dynamic shared memory of functions, which NVRTC does not report
  std::vector<CompiledUnit> compiled_;
};

} // namespace sluice::cuda
