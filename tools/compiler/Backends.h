// The backends available for compilation: those whose compile half is linked in, and those found in SLUICE_BACKEND_PATH
// and in the installation.
#pragma once

#include "ir/Target.h"
#include "passes/backend/TargetDescription.h"
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

/// Whether a peak is of the device's architecture.
inline bool isOf(const passes::PublishedPeak &peak, const runtime::BackendDevice &device) {
  return peak.computeMajor == device.computeMajor && peak.computeMinor == device.computeMinor;
}

/// A device's description of itself; null if this machine lacks the device.
const runtime::BackendDevice *findDevice(llvm::ArrayRef<runtime::BackendFile> files, const ir::TargetDevice &device);

/// Queries a backend for its target with these options. The error contains the backend's reason.
llvm::Expected<passes::TargetDescription> describeTarget(const sluice_backend_compile &backend,
                                                         const CompileOptions &options = {});

} // namespace sluice::compiler
