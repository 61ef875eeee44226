// The backends available for compilation: those whose compile half is linked in, and those found in SLUICE_BACKEND_PATH
// and in the installation.
#pragma once

#include "ir/Target.h"
#include "runtime/plugins/BackendLoader.h"
#include "sluice/backend/compile.h"
#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace sluice::compiler {

const sluice_backend_compile &hostBackend();

/// The linked compile halves, the host's first.
llvm::ArrayRef<const sluice_backend_compile *> builtInBackends();

/// The description of the host by its run half.
runtime::BackendDevice describeHost();

/// The result of loading every shared object found.
std::vector<runtime::BackendFile> tryBackends();

/// The compile half with this name; the error lists rejected files with reasons.
llvm::Expected<const sluice_backend_compile *> findBackend(llvm::StringRef name);

/// Mirrors sluice_peak.
struct PublishedPeak {
  std::string architecture;
  int64_t computeMajor, computeMinor;
  std::string kindEnding;
  double flops, memoryBandwidth;

  bool isOf(const runtime::BackendDevice &device) const {
    return computeMajor == device.computeMajor && computeMinor == device.computeMinor;
  }
};

/// A device's description of itself; null if this machine lacks the device.
const runtime::BackendDevice *findDevice(llvm::ArrayRef<runtime::BackendFile> files, const ir::TargetDevice &device);

/// A backend's description of a target with its settings; the error is its reason to refuse.
struct TargetDescription {
  std::string deviceType, cpu;
  unsigned vectorBits;
  std::string instructions; // "avx2,fma"
  std::string noTreeSums;   // reason why its devices cannot add exchanged values in a tree; empty: they can
  std::vector<PublishedPeak> peaks;
};
llvm::Expected<TargetDescription> describeTarget(const sluice_backend_compile &backend, const std::string &cpu,
                                                 const std::string &settings = "");

} // namespace sluice::compiler
