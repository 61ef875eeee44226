#include "tools/compiler/Files.h"

#include "runtime/files/InputFile.h"
#include "tools/compiler/Diagnostics.h"
#include "llvm/Support/Signals.h"
#include "llvm/Support/raw_ostream.h"
#include <unistd.h>
#include <vector>

namespace sluice::compiler {

static constexpr uint64_t kMaxTextBytes = uint64_t(64) << 20;

static llvm::Error invalid(llvm::StringRef path, const llvm::Twine &reason) {
  return makeError(ExitCode::Invalid, path + ": " + reason);
}

namespace {

/// A file that is removed unless it is kept, also by signals that end the process.
class PendingFile {
public:
  PendingFile(PendingFile &&) = default;
  ~PendingFile() { forget(); }

  static llvm::Expected<PendingFile> write(llvm::StringRef contents, llvm::StringRef output, bool executable) {
    PendingFile pending(output);
    files::Failure failure =
        pending.file.open(pending.output, executable ? files::programPermissions : files::dataPermissions);
    if (failure.empty() && !pending.file.temporary().empty())
      llvm::sys::RemoveFileOnSignal(pending.file.temporary());
    if (failure.empty())
      failure = pending.file.write(contents);
    if (failure.empty())
      return pending;
    return invalid(output, failure);
  }

  llvm::Error keep() {
    forget();
    files::Failure failure = file.commit();
    return failure.empty() ? llvm::Error::success() : invalid(output, failure);
  }

private:
  explicit PendingFile(llvm::StringRef output) : output(output) {}

  void forget() {
    if (!file.temporary().empty())
      llvm::sys::DontRemoveFileOnSignal(file.temporary());
  }

  std::string output;
  files::OutputFile file;
};

} // namespace

llvm::Error writeWhole(llvm::StringRef contents, llvm::StringRef output, bool executable) {
  auto pending = PendingFile::write(contents, output, executable);
  return pending ? pending->keep() : pending.takeError();
}

llvm::Error writeAll(llvm::ArrayRef<OutputText> files) {
  std::vector<PendingFile> pending;
  for (const OutputText &file : files) {
    auto written = PendingFile::write(file.contents, file.path, /*executable=*/false);
    if (!written)
      return written.takeError();
    pending.push_back(std::move(*written));
  }
  for (PendingFile &file : pending)
    if (llvm::Error error = file.keep())
      return error;
  return llvm::Error::success();
}

llvm::Expected<std::string> readText(const std::string &path) {
  std::string text;
  files::Failure failure = files::readFile(path, files::Source::regularOrPipe, kMaxTextBytes, text);
  if (!failure.empty())
    return invalid(path, failure);
  return text;
}

llvm::Error writeStandardOutput(llvm::StringRef contents) {
  llvm::raw_fd_ostream &stream = llvm::outs();
  stream.flush();
  files::Failure failure;
  if (stream.has_error())
    failure = "cannot write: " + stream.error().message();
  stream.clear_error(); // else LLVM would end the process later with its own message
  if (failure.empty())
    failure = files::writeTo(STDOUT_FILENO, contents);
  return failure.empty() ? llvm::Error::success() : invalid("standard output", failure);
}

} // namespace sluice::compiler
