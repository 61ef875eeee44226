// The backends that models can be compiled for: those whose compile half is linked in, and those found in
// SLUICE_BACKEND_PATH and in the installation.
#pragma once

#include "ir/Target.h"
#include "runtime/plugins/BackendLoader.h"
#include "sluice/backend/compile.h"
#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace sluice::compiler {

const sluice_backend_compile &hostBackend();

/// The compile halves that are linked in, the host's first.
llvm::ArrayRef<const sluice_backend_compile *> builtInBackends();

/// What the host's run half says of it.
runtime::BackendDevice describeHost();

/// Every shared object that there is, tried.
std::vector<runtime::BackendFile> tryBackends();

/// The compile half of this name; the error says what was refused and why.
llvm::Expected<const sluice_backend_compile *> findBackend(llvm::StringRef name);

/// As sluice_peak.
struct PublishedPeak {
  std::string architecture;
  int64_t computeMajor, computeMinor;
  std::string kindEnding;
  double flops, memoryBandwidth;

  bool isOf(const runtime::BackendDevice &device) const {
    return computeMajor == device.computeMajor && computeMinor == device.computeMinor;
  }
};

/// What a device says of itself; null if it is not here.
const runtime::BackendDevice *findDevice(llvm::ArrayRef<runtime::BackendFile> files, const ir::TargetDevice &device);

/// What a backend says of a target, and of settings of its own; the error is its reason to refuse.
struct TargetDescription {
  std::string deviceType, cpu;
  unsigned vectorBits;
  std::string instructions; // "avx2,fma"
  std::string noTreeSums;   // why its devices do not add in a tree what replicas exchange; empty: they may
  std::vector<PublishedPeak> peaks;
};
llvm::Expected<TargetDescription> describeTarget(const sluice_backend_compile &backend, const std::string &cpu,
                                                 const std::string &settings = "");

} // namespace sluice::compiler
