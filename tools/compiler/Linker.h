// Links compiled models to programs in process, without an installed compiler or linker.
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"
#include <string>

namespace sluice::compiler {

enum class LinkOutput {
  Executable,    // artifact and runner: depends only on libc, libm, libstdc++, libgcc_s, libtbb and libz
  SharedLibrary, // artifact alone; its only symbol is `sluice_artifact_query`
  Object         // artifact as one object, for another linker
};

/// Merges objects into one and hides all symbols except `symbol`, so that it can be linked with objects that define the
/// same names.
llvm::Expected<std::string> joinObjects(llvm::ArrayRef<std::string> objects, llvm::StringRef symbol);

/// Links object files in memory. `output` is written atomically, and is reproducible.
llvm::Error linkArtifact(llvm::ArrayRef<std::string> objects, llvm::StringRef output, LinkOutput kind);

} // namespace sluice::compiler
