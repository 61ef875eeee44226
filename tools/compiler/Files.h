// Files of the tools: runtime/files/, with errors that have exit codes.
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"
#include <string>

namespace sluice::compiler {

/// Writes `contents` to `output` atomically.
llvm::Error writeWhole(llvm::StringRef contents, llvm::StringRef output, bool executable = false);

struct OutputText {
  std::string path, contents;
};
/// Writes several files, all or none.
llvm::Error writeAll(llvm::ArrayRef<OutputText> files);

/// The text of an input file such as a placement: a regular file or a pipe, of at most 64 MB.
llvm::Expected<std::string> readText(const std::string &path);

/// Writes LLVM's buffered output and `contents` to standard output. A full or closed one is an error.
llvm::Error writeStandardOutput(llvm::StringRef contents = "");

} // namespace sluice::compiler
