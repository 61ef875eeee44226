// The identity of a kernel among the kernels of all programs.
#pragma once

#include "sluice/backend/compile.h"
#include "llvm/ADT/StringRef.h"
#include <string>

namespace sluice::passes {

/// Kernels with equal keys have equal launches and code.
struct KernelKey {
  std::string digest;    ///< 32 bytes
  std::string symbol;    ///< kind and 16 digits of the digest, for example conv2d_9f3a01b2c4d5e6f7
  bool isOfHost = false; ///< its code is that of the host's backend, which is a part of the compiler
};

/// The key of everything in a view except names. `target` identifies the backend and its options.
KernelKey keyOf(const sluice_kernel_view &kernel, llvm::StringRef target, llvm::StringRef kind);

} // namespace sluice::passes
