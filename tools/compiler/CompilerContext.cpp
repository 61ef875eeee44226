#include "tools/compiler/CompilerContext.h"

namespace sluice::compiler {

CompilerContext &CompilerContext::ofProcess() {
  static CompilerContext context;
  return context;
}

} // namespace sluice::compiler
