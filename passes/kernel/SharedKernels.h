// The kernels of one compilation that come from a cache, or go into it.
#pragma once

#include "passes/backend/Backend.h"
#include "passes/kernel/KernelCache.h"
#include "llvm/ADT/MapVector.h"
#include <map>

namespace sluice::passes {

class SharedKernels {
public:
  explicit SharedKernels(KernelCache &cache) : cache(cache) {}

  /// The launch of a kernel that the cache or this compilation has; null if it must be prepared, and added. The pointer
  /// is valid until the next call.
  const KernelLaunch *find(const KernelKey &key);
  /// Adds a kernel that the backend prepared with the symbol of the key.
  void add(const KernelKey &key, Backend &backend, KernelLaunch launch);
  /// Lowers the added kernels, which then are in the cache. Appends the objects of all kernels, each once.
  mlir::LogicalResult lower(mlir::Location loc, std::vector<std::string> &objects);

  /// The kernels of the compilation, and those of them that were in the cache.
  size_t count() const { return kernels.size(); }
  size_t hits() const { return numHits; }

private:
  struct Kernel {
    std::shared_ptr<const CachedKernel> cached; // null until it is lowered
    std::optional<KernelLaunch> launch;         // until then
    std::string symbol;
    Backend *backend;
  };

  mlir::LogicalResult lowerFor(Backend &backend, mlir::Location loc);

  KernelCache &cache;
  llvm::MapVector<std::string, Kernel, std::map<std::string, unsigned>> kernels; // by digest
  size_t numHits = 0;
};

} // namespace sluice::passes
