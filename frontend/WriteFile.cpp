// A file is written under another name, flushed to the disk, and renamed: readers and crashes see the old one or the
// new.
#include "WriteFile.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace sluice::detail {

static bool writeAll(int file, const std::string &text) {
  for (size_t done = 0; done < text.size();) {
    ssize_t n = write(file, text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      return false;
    done += size_t(n);
  }
  return true;
}

static std::string reason() { return std::strerror(errno); }

/// Devices and pipes cannot be replaced: they are written to.
static bool isSpecial(const std::string &path) {
  struct stat status;
  return stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode);
}

static std::string writeInPlace(int file, const std::string &text) {
  return writeAll(file, text) ? std::string() : reason();
}

std::string writeFile(const std::string &path, const std::string &text) {
  if (path == "-")
    return writeInPlace(STDOUT_FILENO, text);
  if (isSpecial(path)) {
    int file = open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (file < 0)
      return reason();
    std::string failure = writeInPlace(file, text);
    close(file);
    return failure;
  }
  std::string draft = path + ".XXXXXX";
  int file = mkstemp(draft.data());
  if (file < 0)
    return reason();
  mode_t mask = umask(0);
  umask(mask);
  bool isWritten = fchmod(file, 0666 & ~mask) == 0 && writeAll(file, text) && fsync(file) == 0;
  std::string failure = isWritten ? std::string() : reason();
  if (close(file) != 0 && failure.empty())
    failure = reason();
  if (failure.empty() && rename(draft.c_str(), path.c_str()) != 0)
    failure = reason();
  if (!failure.empty())
    unlink(draft.c_str());
  return failure;
}

} // namespace sluice::detail
