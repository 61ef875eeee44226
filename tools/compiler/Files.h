// Files of the tools: runtime/files/, with errors that know their exit code.
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"
#include <string>

namespace sluice::compiler {

/// Writes `contents` to `output`, which appears whole or not at all.
llvm::Error writeWhole(llvm::StringRef contents, llvm::StringRef output, bool executable = false);

struct OutputText {
  std::string path, contents;
};
/// Writes several files, all of them or none.
llvm::Error writeAll(llvm::ArrayRef<OutputText> files);

/// The text of a file that says how to work, such as a placement: a regular file or a pipe, of 64 MB at most.
llvm::Expected<std::string> readText(const std::string &path);

/// Writes to the standard output what LLVM's stream and the arguments hold. A full or closed one is an error.
llvm::Error writeStandardOutput(llvm::StringRef contents = "");

} // namespace sluice::compiler
