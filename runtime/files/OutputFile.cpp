#include "runtime/files/OutputFile.h"

#include "runtime/files/Leftovers.h"

#include <cerrno>
#include <climits>
#include <cstring>
#include <fcntl.h>
#include <linux/magic.h>
#include <mutex>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>
#include <utility>

namespace sluice::files {

static constexpr int mostLinks = 40;   // the kernel's limit
static constexpr int mostNames = 1000; // attempts to find an unused temporary name

static std::string folderOf(const std::string &path) {
  size_t slash = path.rfind('/');
  if (slash == std::string::npos)
    return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

/// Whether the link is in /proc, for example the target of /dev/stdout. Such links lead to open files, and no file can
/// be renamed over them.
static bool isOpenFile(const std::string &link) {
  struct statfs facts;
  return statfs(folderOf(link).c_str(), &facts) == 0 && facts.f_type == PROC_SUPER_MAGIC;
}

/// Follows the symbolic links at `path`; the final target need not exist. Sets `isDirect` if the target can only be
/// written in place.
static Failure resolve(std::string &path, bool &isDirect) {
  struct stat facts;
  for (int links = 0; lstat(path.c_str(), &facts) == 0; ++links) {
    isDirect = !S_ISREG(facts.st_mode);
    if (S_ISDIR(facts.st_mode))
      return failed("write", EISDIR);
    if (!S_ISLNK(facts.st_mode) || isOpenFile(path))
      return {};
    if (links == mostLinks)
      return failed("write", ELOOP);
    char target[PATH_MAX];
    ssize_t length = readlink(path.c_str(), target, sizeof target);
    if (length < 0)
      return failed("read the link");
    std::string next(target, static_cast<size_t>(length));
    path = next.starts_with("/") ? next : folderOf(path) + "/" + next;
  }
  isDirect = false; // the target does not exist yet
  return {};
}

/// Opens a new file next to `target`, and removes the temporary files that dead processes left there. Returns -1 and
/// sets errno on failure.
static int openBeside(const std::string &target, std::string &name, unsigned permissions) {
  static std::mutex mutex; // between creation and lock, other threads would treat the file as stale
  static unsigned count = 0;
  std::lock_guard lock(mutex);
  removeLeftovers(folderOf(target), target.substr(target.rfind('/') + 1));
  for (int attempt = 0; attempt < mostNames; ++attempt) {
    name = temporaryNameOf(target, count++);
    int descriptor = open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, permissions);
    if (descriptor >= 0)
      holdTemporary(descriptor);
    if (descriptor >= 0 || errno != EEXIST)
      return descriptor;
  }
  return -1;
}

OutputFile::OutputFile(OutputFile &&other) noexcept { *this = std::move(other); }

OutputFile &OutputFile::operator=(OutputFile &&other) noexcept {
  std::swap(target_, other.target_);
  std::swap(temporary_, other.temporary_);
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

OutputFile::~OutputFile() {
  if (descriptor_ >= 0)
    close(descriptor_);
  if (!temporary_.empty())
    unlink(temporary_.c_str());
}

Failure OutputFile::open(const std::string &path, unsigned permissions) {
  target_ = path;
  bool isDirect = false;
  if (Failure failure = resolve(target_, isDirect); !failure.empty())
    return failure;
  if (isDirect) {
    descriptor_ = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    return descriptor_ < 0 ? failed("open for writing") : Failure();
  }
  std::string name;
  descriptor_ = openBeside(target_, name, permissions);
  if (descriptor_ < 0)
    return failed("create");
  temporary_ = std::move(name);
  return {};
}

Failure OutputFile::write(std::string_view bytes) { return writeTo(descriptor_, bytes); }

Failure OutputFile::commit() {
  bool isDirect = temporary_.empty();
  Failure failure = !isDirect && fsync(descriptor_) != 0 ? failed("write") : Failure();
  if (close(std::exchange(descriptor_, -1)) != 0 && failure.empty())
    failure = failed("write");
  if (isDirect || !failure.empty())
    return failure;
  if (rename(temporary_.c_str(), target_.c_str()) != 0)
    return failed("replace");
  temporary_.clear();
  // The new name is durable only after its folder is synced. A failure is ignored: some file systems cannot sync
  // folders.
  int folder = ::open(folderOf(target_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder >= 0) {
    fsync(folder);
    close(folder);
  }
  return {};
}

Failure writeFile(const std::string &path, std::string_view contents, unsigned permissions) {
  OutputFile file;
  Failure failure = file.open(path, permissions);
  if (failure.empty())
    failure = file.write(contents);
  return failure.empty() ? file.commit() : failure;
}

Failure checkWritable(const std::string &path) {
  std::string target = path;
  bool isDirect = false;
  if (Failure failure = resolve(target, isDirect); !failure.empty())
    return failure;
  if (isDirect) // opening and closing a pipe would signal the end of the file to its reader
    return access(path.c_str(), W_OK) == 0 ? Failure() : failed("open for writing");
  return OutputFile().open(path);
}

Failure openForAppending(const std::string &path, std::string_view contents, int &descriptor) {
  std::string target = path;
  bool isDirect = false;
  Failure failure = resolve(target, isDirect);
  if (failure.empty() && !isDirect)
    failure = writeFile(path, contents);
  if (!failure.empty())
    return failure;
  descriptor = open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  if (descriptor < 0)
    return failed("open for writing");
  return isDirect ? writeTo(descriptor, contents) : Failure();
}

Failure writeTo(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    ssize_t count = write(descriptor, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      return failed("write");
    bytes.remove_prefix(static_cast<size_t>(count));
  }
  return {};
}

} // namespace sluice::files
