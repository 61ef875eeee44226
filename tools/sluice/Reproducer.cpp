#include "tools/sluice/Reproducer.h"

#include "runtime/files/Process.h"
#include "tools/compiler/Diagnostics.h"
#include "tools/compiler/Files.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/CrashRecoveryContext.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"

namespace fs = llvm::sys::fs;
using sluice::compiler::ExitCode;

namespace sluice::tool {

static constexpr unsigned kStackBytes = 64u << 20;
static constexpr size_t kLeastMemoryLeft = size_t(128) << 20; // malloc's mapping granularity per thread

/// Copies the models among the arguments, and writes the command with the names of the copies. Returns the folder, or
/// an empty string.
static std::string writeReproducer(const std::vector<std::string> &arguments) {
  llvm::SmallString<128> folder;
  if (fs::createUniqueDirectory("sluice-reproducer", folder))
    return "";
  std::string command = "sluice";
  for (const std::string &argument : arguments) {
    llvm::StringRef word = argument;
    if (word.ends_with(".mlir") && fs::is_regular_file(word)) {
      llvm::SmallString<128> copy(folder);
      llvm::sys::path::append(copy, llvm::sys::path::filename(word));
      if (!fs::copy_file(word, copy))
        word = llvm::sys::path::filename(word);
    }
    llvm::raw_string_ostream out(command);
    out << ' ';
    llvm::sys::printArg(out, word, /*Quote=*/false);
  }
  llvm::SmallString<128> script(folder);
  llvm::sys::path::append(script, "command");
  llvm::consumeError(compiler::writeWhole(command + "\n", script));
  return folder.str().str();
}

llvm::Error runGuarded(llvm::function_ref<llvm::Error()> action, const std::vector<std::string> &arguments) {
  llvm::CrashRecoveryContext::Enable();
  llvm::CrashRecoveryContext context;
  compiler::Failure failure{ExitCode::Fine, ""};
  bool returned = context.RunSafelyOnThread(
      [&] {
        if (llvm::Error error = action())
          failure = compiler::takeFailure(std::move(error));
      },
      kStackBytes);
  if (returned && failure.code == ExitCode::Fine)
    return llvm::Error::success();
  if (returned && failure.code != ExitCode::Internal)
    return compiler::makeError(failure.code, failure.text);
  // MLIR does not check the result of malloc; the memory that it exhausted is still allocated.
  if (!returned && !files::memoryIsLeft(kLeastMemoryLeft))
    return compiler::makeError(compiler::ExitCode::Exhausted, "out of memory");
  std::string folder = writeReproducer(arguments);
  return compiler::makeError(ExitCode::Internal,
                             (returned ? failure.text : "internal error: crashed") +
                                 (folder.empty() ? "" : "; the input that reproduces it is in " + folder));
}

} // namespace sluice::tool
