// Prepared and lowered kernels by content, shared by compilations of any programs in one process.
#pragma once

#include "passes/kernel/KernelLaunch.h"
#include "llvm/ADT/StringMap.h"
#include <list>
#include <memory>
#include <mutex>

namespace sluice::passes {

/// Nothing in a kernel refers to the session or to the MLIR context that made it.
struct CachedKernel {
  KernelLaunch launch;
  std::string object; ///< its code for the host; empty if it needs none

  size_t bytes() const;
};

/// Holds the most recently used kernels, up to a number of bytes. Any thread may call it. KernelFolder.h is the cache on
/// disk.
class KernelCache {
public:
  struct Counts {
    size_t hits = 0, misses = 0; ///< of `find`
    size_t kernels = 0, bytes = 0;
  };

  static constexpr size_t kMostBytes = size_t(64) << 20;
  explicit KernelCache(size_t mostBytes = kMostBytes) : mostBytes(mostBytes) {}

  /// The kernel with this digest (KernelKey); null if there is none.
  std::shared_ptr<const CachedKernel> find(llvm::StringRef digest);
  /// Adds a kernel, unless there is one with its digest. Removes the least recently used kernels that exceed the bound.
  void add(llvm::StringRef digest, std::shared_ptr<const CachedKernel> kernel);
  Counts counts() const;

private:
  struct Entry {
    std::string digest;
    std::shared_ptr<const CachedKernel> kernel;
  };

  const size_t mostBytes;
  mutable std::mutex mutex;
  std::list<Entry> entries; // the most recently used first
  llvm::StringMap<std::list<Entry>::iterator> byDigest;
  Counts known;
};

} // namespace sluice::passes
