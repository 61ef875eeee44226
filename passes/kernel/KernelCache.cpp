#include "passes/kernel/KernelCache.h"

namespace sluice::passes {

size_t CachedKernel::bytes() const {
  size_t bytes = sizeof(*this) + object.size() + launch.parameters.size();
  for (const KernelLaunch::Stage &stage : launch.stages)
    bytes += sizeof(stage) + stage.symbol.size();
  return bytes;
}

std::shared_ptr<const CachedKernel> KernelCache::find(llvm::StringRef digest) {
  std::lock_guard lock(mutex);
  auto found = byDigest.find(digest);
  if (found == byDigest.end()) {
    ++known.misses;
    return nullptr;
  }
  ++known.hits;
  entries.splice(entries.begin(), entries, found->second);
  return found->second->kernel;
}

void KernelCache::add(llvm::StringRef digest, std::shared_ptr<const CachedKernel> kernel) {
  std::lock_guard lock(mutex);
  auto [place, isNew] = byDigest.try_emplace(digest);
  if (!isNew) // of another thread
    return;
  known.bytes += kernel->bytes();
  entries.push_front({digest.str(), std::move(kernel)});
  place->second = entries.begin();
  while (known.bytes > mostBytes) {
    known.bytes -= entries.back().kernel->bytes();
    byDigest.erase(entries.back().digest);
    entries.pop_back();
  }
}

KernelCache::Counts KernelCache::counts() const {
  std::lock_guard lock(mutex);
  Counts counts = known;
  counts.kernels = entries.size();
  return counts;
}

} // namespace sluice::passes
