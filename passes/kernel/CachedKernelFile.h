// A compiled kernel as the content of a file.
#pragma once

#include "passes/kernel/KernelCache.h"

namespace sluice::passes {

/// The content of a file called `name`, for a kernel that is launched as stages of host code.
std::string writeCachedKernel(CachedKernel kernel, llvm::StringRef name);

/// Null if the content is damaged, or was written for a file with another name.
std::shared_ptr<const CachedKernel> readCachedKernel(llvm::StringRef content, llvm::StringRef name);

} // namespace sluice::passes
