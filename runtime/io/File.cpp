#include "runtime/io/File.h"

#include "runtime/Status.h"
#include "runtime/Text.h"

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <sys/stat.h>
#include <unistd.h>

namespace sluice::runtime {

void failSystem(const std::string &path, const char *action) {
  int error = errno;
  failInvalid(concat(path, ": cannot ", action, ": ", std::strerror(error)));
}

namespace {
class Descriptor {
public:
  explicit Descriptor(int descriptor) : descriptor_(descriptor) {}
  Descriptor(const Descriptor &) = delete;
  Descriptor &operator=(const Descriptor &) = delete;
  ~Descriptor() {
    if (descriptor_ >= 0)
      close(descriptor_);
  }
  int get() const { return descriptor_; }

private:
  int descriptor_;
};
} // namespace

Bytes readFile(const std::string &path) {
  Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0)
    failSystem(path, "open");
  struct stat facts;
  if (fstat(file.get(), &facts) != 0)
    failSystem(path, "examine");
  if (!S_ISREG(facts.st_mode))
    failInvalid(concat(path, ": not a regular file"));
  Bytes content(static_cast<size_t>(facts.st_size));
  size_t have = 0;
  while (have < content.size()) {
    ssize_t count = read(file.get(), content.data() + have, content.size() - have);
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      failSystem(path, "read");
    if (count == 0)
      failInvalid(concat(path, ": shrank from ", content.size(), " to ", have, " bytes while it was read"));
    have += static_cast<size_t>(count);
  }
  return content;
}

static std::string folderOf(const std::string &path) {
  size_t slash = path.rfind('/');
  if (slash == std::string::npos)
    return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

/// The file that `path` leads to, so that a rename replaces it and not a symbolic link to it.
static std::string resolved(const std::string &path) {
  std::unique_ptr<char, decltype(&std::free)> real(realpath(path.c_str(), nullptr), &std::free);
  return real ? std::string(real.get()) : path;
}

AtomicFile::AtomicFile(const std::string &path) : path_(resolved(path)) {
  struct stat facts;
  bool exists = stat(path_.c_str(), &facts) == 0;
  if (exists && S_ISDIR(facts.st_mode))
    failInvalid(concat(path, ": cannot write: it is a folder"));
  if (exists && !S_ISREG(facts.st_mode)) {
    descriptor_ = open(path_.c_str(), O_WRONLY | O_CLOEXEC);
    if (descriptor_ < 0)
      failSystem(path_, "open for writing");
    return;
  }
  temporary_ = concat(path_, temporaryMark, getpid());
  descriptor_ = open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (descriptor_ < 0)
    failSystem(path_, "create");
}

AtomicFile::~AtomicFile() {
  if (descriptor_ >= 0)
    close(descriptor_);
  if (!temporary_.empty())
    unlink(temporary_.c_str());
}

void AtomicFile::write(const void *data, size_t bytes) {
  const char *next = static_cast<const char *>(data);
  while (bytes > 0) {
    ssize_t count = ::write(descriptor_, next, bytes);
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      failSystem(path_, "write");
    next += count;
    bytes -= static_cast<size_t>(count);
  }
}

void AtomicFile::commit() {
  bool direct = temporary_.empty();
  if (!direct && fsync(descriptor_) != 0)
    failSystem(path_, "write");
  int closed = close(descriptor_);
  descriptor_ = -1;
  if (closed != 0)
    failSystem(path_, "write");
  if (direct)
    return;
  if (rename(temporary_.c_str(), path_.c_str()) != 0)
    failSystem(path_, "replace");
  temporary_.clear();
  // The new name itself is durable only once its folder is.
  Descriptor folder(open(folderOf(path_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.get() < 0 || fsync(folder.get()) != 0)
    failSystem(path_, "sync the folder of");
}

} // namespace sluice::runtime
