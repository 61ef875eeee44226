// Links compiled models into programs, in process: no compiler or linker needs to be installed.
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"
#include <string>

namespace sluice::compiler {

enum class LinkOutput {
  Executable,    // the artifact with the runner: needs libc, libm, libstdc++, libgcc_s, libtbb and libz, nothing else
  SharedLibrary, // the artifact alone; `sluice_artifact_query` is its one symbol
  Object         // the artifact as one object, for a linker to come
};

/// One object in place of several, in which all that they define is hidden but `symbol`: so that what has the same names
/// can be linked with it.
llvm::Expected<std::string> joinObjects(llvm::ArrayRef<std::string> objects, llvm::StringRef symbol);

/// Links object files held in memory. `output` appears whole or not at all, and is the same for the same objects.
llvm::Error linkArtifact(llvm::ArrayRef<std::string> objects, llvm::StringRef output, LinkOutput kind);

} // namespace sluice::compiler
