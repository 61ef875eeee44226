#include "passes/kernel/SharedKernels.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace sluice::passes {

std::shared_ptr<const CachedKernel> SharedKernels::findCached(const KernelKey &key) {
  std::shared_ptr<const CachedKernel> cached = cache.find(key.digest);
  if (cached) {
    ++numReused;
  } else if (folder && key.isOfHost && (cached = folder->find(key.digest))) {
    ++numFromFolder;
    cache.add(key.digest, cached);
  }
  return cached;
}

const KernelLaunch *SharedKernels::find(const KernelKey &key) {
  if (writesTexts)
    return nullptr;
  auto known = kernels.find(key.digest);
  if (known == kernels.end()) {
    std::shared_ptr<const CachedKernel> cached = findCached(key);
    if (!cached)
      return nullptr;
    Kernel kernel{std::move(cached), std::nullopt, key, nullptr};
    known = kernels.insert(std::make_pair(key.digest, std::move(kernel))).first;
  }
  const Kernel &kernel = known->second;
  return kernel.cached ? &kernel.cached->launch : &*kernel.launch;
}

void SharedKernels::add(const KernelKey &key, Backend &backend, KernelLaunch launch) {
  std::string which = writesTexts ? (backend.name() + key.digest).str() : key.digest;
  kernels.insert(std::make_pair(std::move(which), Kernel{nullptr, std::move(launch), key, &backend}));
}

LogicalResult SharedKernels::lowerFor(Backend &backend, Location loc) {
  std::vector<std::string> symbols;
  SmallVector<std::pair<std::string, Kernel> *> lowered;
  for (auto &listed : kernels)
    if (listed.second.backend == &backend) {
      symbols.push_back(listed.second.key.symbol);
      lowered.push_back(&listed);
    }
  FailureOr<std::vector<std::string>> objects = backend.lowerKernels(symbols, loc);
  if (failed(objects))
    return failure();
  for (auto [listed, object] : llvm::zip_equal(lowered, *objects)) {
    Kernel &kernel = listed->second;
    kernel.cached = std::make_shared<const CachedKernel>(CachedKernel{std::move(*kernel.launch), std::move(object)});
    cache.add(kernel.key.digest, kernel.cached);
    if (folder && kernel.key.isOfHost)
      folder->add(kernel.key.digest, *kernel.cached);
  }
  return success();
}

LogicalResult SharedKernels::lower(Location loc, std::vector<std::string> &objects) {
  llvm::SetVector<Backend *> backends;
  for (auto &[which, kernel] : kernels)
    if (kernel.backend)
      backends.insert(kernel.backend);
  for (Backend *backend : backends)
    if (failed(lowerFor(*backend, loc)))
      return failure();
  llvm::StringSet<> linked;
  for (auto &[which, kernel] : kernels)
    if (linked.insert(kernel.key.digest).second && !kernel.cached->object.empty())
      objects.push_back(kernel.cached->object);
  return success();
}

} // namespace sluice::passes
