#include "backends/cpu/compiler/Target.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/SubtargetFeature.h"

#include <unistd.h>

namespace sluice::cpu {

// Processors that start only one 512-bit multiply-add a cycle: the vector ports are 256 bits wide, or the second is
// absent.
static bool hasSingleWideFma(llvm::StringRef cpu) {
  static const llvm::StringSet<> single = {"znver4", "icelake-client", "tigerlake", "rocketlake", "cannonlake"};
  return single.contains(cpu);
}

static int64_t cacheBytes(int name, int64_t fallback) {
  long bytes = sysconf(name);
  return bytes > 0 ? bytes : fallback;
}

Target Target::host() {
  Target target;
  llvm::StringMap<bool> available = llvm::sys::getHostCPUFeatures();
  target.cpu = llvm::sys::getHostCPUName().str();
  llvm::SubtargetFeatures features;
  for (const auto &feature : available)
    features.AddFeature(feature.first(), feature.second);
  target.features = features.getString();
  bool wide = available.lookup("avx512f") && available.lookup("avx512vl") && available.lookup("avx512dq");
  bool fma = available.lookup("avx2") && available.lookup("fma");
  target.vectorBits = wide ? 512 : fma ? 256 : 128;
  target.numVectorRegisters = wide ? 32 : 16;
  target.fmaPorts = wide && hasSingleWideFma(target.cpu) ? 1 : 2;
  target.l1 = cacheBytes(_SC_LEVEL1_DCACHE_SIZE, target.l1);
  target.l2 = cacheBytes(_SC_LEVEL2_CACHE_SIZE, target.l2);
  return target;
}

} // namespace sluice::cpu
