// Files: read whole, written atomically. Every error names the file and the system's reason.
#ifndef SLUICE_RUNTIME_IO_FILE_H
#define SLUICE_RUNTIME_IO_FILE_H

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::runtime {

using Bytes = std::vector<std::byte>;

/// A message such as "x.npy: cannot open: No such file or directory", from errno.
[[noreturn]] void failSystem(const std::string &path, const char *action);

/// The content of a regular file.
Bytes readFile(const std::string &path);

/// A file that appears under its name complete or not at all: it is written beside it, synced, and renamed. Without
/// `commit` the destructor removes what was written. A destination that is no regular file, such as a pipe, is written
/// directly.
class AtomicFile {
public:
  explicit AtomicFile(const std::string &path);
  AtomicFile(const AtomicFile &) = delete;
  AtomicFile &operator=(const AtomicFile &) = delete;
  ~AtomicFile();

  void write(const void *data, size_t bytes);
  void write(std::string_view text) { write(text.data(), text.size()); }
  void commit();

private:
  std::string path_, temporary_; ///< `temporary_` is empty when writing directly
  int descriptor_ = -1;
};

/// What marks the name of an AtomicFile that is not complete; a process that was killed may leave one behind.
inline constexpr std::string_view temporaryMark = ".sluice-tmp-";

} // namespace sluice::runtime

#endif
