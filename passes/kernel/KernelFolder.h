// Compiled kernels in the files of a folder, by content, for other processes.
#pragma once

#include "passes/kernel/KernelCache.h"

namespace sluice::passes {

/// Any number of processes and threads may use a folder. A file gets its name when it is complete, and a damaged file is
/// ignored. The files have at most a number of bytes; the least recently used ones are removed.
class KernelFolder {
public:
  static constexpr uint64_t kMostBytes = uint64_t(256) << 20;

  /// `compiler` identifies the versions of the code generators; the digest of a kernel does not contain them.
  KernelFolder(std::string path, std::string compiler, uint64_t mostBytes = kMostBytes)
      : path(std::move(path)), compiler(std::move(compiler)), mostBytes(mostBytes) {}

  /// The kernel with this digest (KernelKey); null if there is none.
  std::shared_ptr<const CachedKernel> find(llvm::StringRef digest) const;
  /// Adds a kernel, which must be launched as stages of host code. Does nothing after a failure.
  void add(llvm::StringRef digest, const CachedKernel &kernel);
  /// The failure to add a kernel; empty if there was none.
  std::string problem() const;

private:
  std::string nameOf(llvm::StringRef digest) const;
  void noteAdded(uint64_t bytes);

  const std::string path, compiler;
  const uint64_t mostBytes;
  mutable std::mutex mutex; // of the members below
  uint64_t untilCheck = 0;  // bytes to add before the size of the folder is checked again
  std::string reason;
};

} // namespace sluice::passes
