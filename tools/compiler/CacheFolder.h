// The folder of the user's compiled kernels, and the version of their code.
#pragma once

#include <string>

namespace sluice::compiler {

/// $SLUICE_CACHE, or $XDG_CACHE_HOME/sluice, or ~/.cache/sluice. Empty if $SLUICE_CACHE is no absolute path, such as
/// "off", or if there is no home.
std::string findCacheFolder();

/// Identifies the builds of this compiler, of MLIR and of LLVM. Empty if one of them was linked without a build ID.
std::string versionOfCodeGenerators();

} // namespace sluice::compiler
