#include "runtime/files/Leftovers.h"

#include "runtime/files/OutputFile.h"

#include <cerrno>
#include <charconv>
#include <csignal>
#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

namespace sluice::files {

std::string temporaryNameOf(const std::string &target, unsigned number) {
  return target + std::string(temporaryMark) + std::to_string(getpid()) + "-" + std::to_string(number);
}

void holdTemporary(int descriptor) {
  // Some file systems have no locks. On these file systems the temporary files of killed processes are never removed.
  (void)flock(descriptor, LOCK_EX | LOCK_NB);
}

/// The process ID in a suffix such as "1234-0"; 0 if the text has another form.
static pid_t writerIn(std::string_view text) {
  pid_t process = 0;
  unsigned number = 0;
  const char *end = text.data() + text.size();
  auto [behind, error] = std::from_chars(text.data(), end, process);
  if (error != std::errc() || behind == end || *behind != '-' || process <= 0)
    return 0;
  auto [last, wrong] = std::from_chars(behind + 1, end, number);
  return wrong == std::errc() && last == end ? process : 0;
}

static bool runs(pid_t process) { return process != getpid() && (kill(process, 0) == 0 || errno != ESRCH); }

/// Whether no process holds the lock of the file.
static bool isFree(const std::string &path) {
  int descriptor = open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (descriptor < 0)
    return false;
  bool isLocked = flock(descriptor, LOCK_EX | LOCK_NB) == 0;
  close(descriptor);
  return isLocked;
}

void removeLeftovers(const std::string &folder, const std::string &name) {
  DIR *entries = opendir(folder.c_str());
  if (!entries)
    return;
  const std::string start = name + std::string(temporaryMark);
  while (const dirent *entry = readdir(entries)) {
    std::string_view found = entry->d_name;
    if (!found.starts_with(start))
      continue;
    pid_t writer = writerIn(found.substr(start.size()));
    std::string path = folder + "/" + std::string(found);
    if (writer > 0 && !runs(writer) && isFree(path))
      unlink(path.c_str());
  }
  closedir(entries);
}

} // namespace sluice::files
