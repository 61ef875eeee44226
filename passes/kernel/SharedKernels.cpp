#include "passes/kernel/SharedKernels.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace sluice::passes {

const KernelLaunch *SharedKernels::find(const KernelKey &key) {
  auto known = kernels.find(key.digest);
  if (known == kernels.end()) {
    std::shared_ptr<const CachedKernel> cached = cache.find(key.digest);
    if (!cached)
      return nullptr;
    ++numHits;
    Kernel kernel{std::move(cached), std::nullopt, key.symbol, nullptr};
    known = kernels.insert(std::make_pair(key.digest, std::move(kernel))).first;
  }
  const Kernel &kernel = known->second;
  return kernel.cached ? &kernel.cached->launch : &*kernel.launch;
}

void SharedKernels::add(const KernelKey &key, Backend &backend, KernelLaunch launch) {
  kernels.insert(std::make_pair(key.digest, Kernel{nullptr, std::move(launch), key.symbol, &backend}));
}

LogicalResult SharedKernels::lowerFor(Backend &backend, Location loc) {
  std::vector<std::string> symbols;
  SmallVector<std::pair<std::string, Kernel> *> lowered;
  for (auto &listed : kernels)
    if (listed.second.backend == &backend) {
      symbols.push_back(listed.second.symbol);
      lowered.push_back(&listed);
    }
  FailureOr<std::vector<std::string>> objects = backend.lowerKernels(symbols, loc);
  if (failed(objects))
    return failure();
  for (auto [listed, object] : llvm::zip_equal(lowered, *objects)) {
    auto &[digest, kernel] = *listed;
    kernel.cached = std::make_shared<const CachedKernel>(CachedKernel{std::move(*kernel.launch), std::move(object)});
    cache.add(digest, kernel.cached);
  }
  return success();
}

LogicalResult SharedKernels::lower(Location loc, std::vector<std::string> &objects) {
  llvm::SetVector<Backend *> backends;
  for (auto &[digest, kernel] : kernels)
    if (kernel.backend)
      backends.insert(kernel.backend);
  for (Backend *backend : backends)
    if (failed(lowerFor(*backend, loc)))
      return failure();
  for (auto &[digest, kernel] : kernels)
    if (!kernel.cached->object.empty())
      objects.push_back(kernel.cached->object);
  return success();
}

} // namespace sluice::passes
