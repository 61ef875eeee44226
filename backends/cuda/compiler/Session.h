// What the CUDA backend is asked to compile, for one target: kernels become functions of CUDA C++, and these the code of
// each architecture.
#pragma once

#include "backends/cuda/compiler/kernels/GridKernel.h"
#include "backends/cuda/compiler/nvrtc/Dump.h"
#include "backends/cuda/compiler/nvrtc/ModuleImage.h"
#include "backends/cuda/compiler/nvrtc/Nvrtc.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace sluice::cuda {

struct Settings {
  /// Such as "sm_90"; for none they are sm_80, sm_90, sm_100 and compute_80, as far as NVRTC has them.
  std::vector<std::string> architectures;
  bool tf32 = false; ///< products of f32 on tensor cores, with operands rounded to 11 bits
  /// Which products are left to a library: those with so many multiply-adds times two, at capacity.
  double libraryFlops = kLargeProduct;
  bool timed = false;      ///< a library's algorithms, when code is loaded, see runtime/AlgorithmTiming.h
  std::string dump;        ///< a folder for what NVRTC gets and what it says, see Dump.h; none: ""
  std::string temporaries; ///< another one for the same, which the user has not named for this backend

  /// Some microseconds of a device's work: below, a launch of its own and what is not fused with it cost more than a
  /// library's better kernel gains.
  static constexpr double kLargeProduct = 1 << 28;
};

/// Of a text such as "arch=sm_80+sm_90,tf32=on,library=all,algorithms=timed,dump=FOLDER"; library may be all, large or none,
/// algorithms may be timed or fixed. Another setting is an error.
llvm::Expected<Settings> readSettings(llvm::StringRef text);

class Session {
public:
  /// Fails where there is no NVRTC, or one without an architecture, or where an architecture lacks what is asked for.
  static llvm::Expected<Session> begin(Settings settings, int64_t capacity);

  const std::vector<std::string> &architectures() const { return settings.architectures; }
  /// How products are written.
  GridOptions options() const;
  /// Whether a library's algorithms are timed.
  bool timesAlgorithms() const { return settings.timed; }
  int64_t capacity() const { return capacity_; }

  struct Prepared {
    std::string function; ///< of the image
    int64_t workspaceBytes;
    double lanes; ///< as GridKernel has them
  };
  mlir::FailureOr<Prepared> prepare(ir::KernelOp kernel);
  /// Whether a kernel of these ops, of which that is all that is kept, is left to a library.
  bool isForLibrary(llvm::ArrayRef<mlir::Operation *> ops, mlir::ValueRange kept) const {
    return libraryProductOf(ops, kept).has_value();
  }
  /// The image of all kernels.
  llvm::Expected<std::string> lower();
  /// What was compiled for it; code for one architecture may be of several units.
  const std::vector<CompiledUnit> &compiled() const { return compiled_; }

private:
  Session(Nvrtc nvrtc, Settings settings, int64_t capacity)
      : nvrtc(std::move(nvrtc)), settings(std::move(settings)), capacity_(capacity) {}

  std::optional<LibraryProduct> libraryProductOf(llvm::ArrayRef<mlir::Operation *> ops, mlir::ValueRange kept) const;
  std::vector<std::string> units() const;
  /// For what NVRTC gets and says.
  std::vector<std::string> folders() const;

  Nvrtc nvrtc;
  Settings settings;
  int64_t capacity_;
  ModuleImage image;
  std::vector<std::string> texts;   // of the kernels
  llvm::StringMap<int> sharedBytes; // of functions, beside what the compiler knows of
  std::vector<CompiledUnit> compiled_;
};

} // namespace sluice::cuda
