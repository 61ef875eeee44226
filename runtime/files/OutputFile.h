// Writes every file of Sluice: used by programs, the compiler and compiled models.
//
// A regular file is written to a temporary file, synced and renamed, so that readers and crashes see either the old or
// the new file. Symbolic links are followed and kept. Devices, pipes and other special files cannot be replaced and are
// written directly. Uses neither LLVM nor exceptions: every call returns an empty string or the reason for its failure.
#pragma once

#include "runtime/files/Failure.h"

#include <string>
#include <string_view>

namespace sluice::files {

/// Read and write for all users, minus the process's umask.
inline constexpr unsigned dataPermissions = 0666, programPermissions = 0777;

/// Part of the name of an incomplete file. A killed process may leave such a file. The next process that opens the same
/// target removes it (Leftovers.h).
inline constexpr std::string_view temporaryMark = ".sluice-tmp-";

/// A file being written. Without `commit` it is discarded, unless it is written directly.
class OutputFile {
public:
  OutputFile() = default;
  OutputFile(OutputFile &&other) noexcept;
  OutputFile &operator=(OutputFile &&other) noexcept;
  ~OutputFile();

  Failure open(const std::string &path, unsigned permissions = dataPermissions);
  Failure write(std::string_view bytes);
  Failure commit();

  /// The name of the file before `commit`; empty if it is written directly.
  const std::string &temporary() const { return temporary_; }

private:
  std::string target_, temporary_;
  int descriptor_ = -1;
};

/// Writes a whole file.
Failure writeFile(const std::string &path, std::string_view contents, unsigned permissions = dataPermissions);

/// Whether `writeFile` could start, to fail before hours of work. Creates no file and opens no pipe.
Failure checkWritable(const std::string &path);

/// Replaces `path` by a file with `contents` and opens it for appending. A target that cannot be replaced, for example
/// a pipe, receives `contents` first.
Failure openForAppending(const std::string &path, std::string_view contents, int &descriptor);

/// Writes all of `bytes` to an open file.
Failure writeTo(int descriptor, std::string_view bytes);

} // namespace sluice::files
