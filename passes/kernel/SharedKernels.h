// The kernels of one compilation that come from the caches, or go into them.
#pragma once

#include "passes/backend/Backend.h"
#include "passes/kernel/KernelCache.h"
#include "passes/kernel/KernelFolder.h"
#include "llvm/ADT/MapVector.h"
#include <map>

namespace sluice::passes {

struct SharedCounts {
  size_t kernels = 0;    ///< of the compilation
  size_t reused = 0;     ///< of earlier compilations in this process
  size_t fromFolder = 0; ///< of other processes
};

class SharedKernels {
public:
  /// A null `folder` is none. If texts are written, all backends prepare and lower all their kernels, and nothing comes
  /// from the caches.
  SharedKernels(KernelCache &cache, KernelFolder *folder, bool writesTexts)
      : cache(cache), folder(folder), writesTexts(writesTexts) {}

  /// The launch of a kernel that a cache or this compilation has; null if it must be prepared, and added. The pointer
  /// is valid until the next call.
  const KernelLaunch *find(const KernelKey &key);
  /// Adds a kernel that the backend prepared with the symbol of the key.
  void add(const KernelKey &key, Backend &backend, KernelLaunch launch);
  /// Lowers the added kernels, which then are in the caches. Appends the objects of all kernels, each once.
  mlir::LogicalResult lower(mlir::Location loc, std::vector<std::string> &objects);

  SharedCounts counts() const { return {kernels.size(), numReused, numFromFolder}; }

private:
  struct Kernel {
    std::shared_ptr<const CachedKernel> cached; // null until it is lowered
    std::optional<KernelLaunch> launch;         // until then
    KernelKey key;
    Backend *backend;
  };

  std::shared_ptr<const CachedKernel> findCached(const KernelKey &key);
  mlir::LogicalResult lowerFor(Backend &backend, mlir::Location loc);

  KernelCache &cache;
  KernelFolder *folder;
  const bool writesTexts;
  llvm::MapVector<std::string, Kernel, std::map<std::string, unsigned>> kernels; // by digest, or by backend and digest
  size_t numReused = 0, numFromFolder = 0;
};

} // namespace sluice::passes
