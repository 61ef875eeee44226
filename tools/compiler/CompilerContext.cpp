#include "tools/compiler/CompilerContext.h"

#include "tools/compiler/CacheFolder.h"

namespace sluice::compiler {

CompilerContext &CompilerContext::ofProcess() {
  static CompilerContext context;
  return context;
}

passes::KernelFolder *CompilerContext::kernelFolder() {
  std::call_once(folderIsFound, [this] {
    std::string path = findCacheFolder(), version = versionOfCodeGenerators();
    if (!path.empty() && !version.empty())
      folder.emplace(path, version);
  });
  return folder ? &*folder : nullptr;
}

} // namespace sluice::compiler
