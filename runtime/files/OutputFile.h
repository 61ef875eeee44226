// How every file of Sluice is written: by programs, by the compiler and by compiled models alike.
//
// A regular file is written beside itself, synced and renamed, so that readers and crashes see the old one or the new;
// symbolic links are followed, and stay. What is no regular file, such as a device or a pipe, cannot be replaced and is
// written directly. Needs neither LLVM nor exceptions: every call returns nothing, or why it failed.
#pragma once

#include "runtime/files/Failure.h"

#include <string>
#include <string_view>

namespace sluice::files {

/// Read and write for all, less the process's mask.
inline constexpr unsigned dataPermissions = 0666, programPermissions = 0777;

/// Part of the name of an incomplete file. A killed process may leave such a file. The next process that opens the same
/// target removes it (Leftovers.h).
inline constexpr std::string_view temporaryMark = ".sluice-tmp-";

/// One file being written. Without `commit` nothing stays of it, unless it is written directly.
class OutputFile {
public:
  OutputFile() = default;
  OutputFile(OutputFile &&other) noexcept;
  OutputFile &operator=(OutputFile &&other) noexcept;
  ~OutputFile();

  Failure open(const std::string &path, unsigned permissions = dataPermissions);
  Failure write(std::string_view bytes);
  Failure commit();

  /// The name that the file has until `commit`; empty if it is written directly.
  const std::string &temporary() const { return temporary_; }

private:
  std::string target_, temporary_;
  int descriptor_ = -1;
};

/// A whole file at once.
Failure writeFile(const std::string &path, std::string_view contents, unsigned permissions = dataPermissions);

/// Whether `writeFile` could begin: better to learn it before hours of work. Nothing is left, and no pipe is opened.
Failure checkWritable(const std::string &path);

/// Makes `path` a file that holds `contents` and opens it for more, each write at its end.
Failure openForAppending(const std::string &path, std::string_view contents, int &descriptor);

/// Writes all of `bytes` to an open file.
Failure writeTo(int descriptor, std::string_view bytes);

} // namespace sluice::files
