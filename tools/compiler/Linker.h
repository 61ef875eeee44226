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

/// Links object files held in memory. `output` appears whole or not at all, and is the same for the same objects.
llvm::Error linkArtifact(llvm::ArrayRef<std::string> objects, llvm::StringRef output, LinkOutput kind);

/// Writes `contents` to `output` by way of a temporary name beside it, so that it appears whole or not at all.
llvm::Error writeWhole(llvm::StringRef contents, llvm::StringRef output, bool executable = false);

struct OutputText {
  std::string path, contents;
};
/// Writes several files, all of them or none.
llvm::Error writeAll(llvm::ArrayRef<OutputText> files);

} // namespace sluice::compiler
