#include "runtime/files/InputFile.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace sluice::files {

static constexpr uint64_t blockBytes = uint64_t(1) << 20;

Failure openForReading(const std::string &path, Source source, int &descriptor, uint64_t &bytes) {
  // Without O_NONBLOCK, opening a pipe without a writer would block here.
  descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0)
    return failed("open");
  Failure failure;
  struct stat facts;
  if (fstat(descriptor, &facts) != 0)
    failure = failed("examine");
  else if (S_ISDIR(facts.st_mode))
    failure = failed("read", EISDIR);
  else if (!S_ISREG(facts.st_mode) && source == Source::regular)
    failure = "not a regular file";
  else if (!S_ISREG(facts.st_mode) && !S_ISFIFO(facts.st_mode))
    failure = "neither a regular file nor a pipe";
  bytes = failure.empty() && S_ISREG(facts.st_mode) ? static_cast<uint64_t>(facts.st_size) : 0;
  if (!failure.empty())
    close(std::exchange(descriptor, -1));
  return failure;
}

Failure checkReadable(const std::string &path, Source source) {
  int descriptor = -1;
  uint64_t bytes = 0;
  Failure failure = openForReading(path, source, descriptor, bytes);
  if (failure.empty())
    close(descriptor);
  return failure;
}

Failure readFrom(int descriptor, void *to, uint64_t bytes, uint64_t &got) {
  for (got = 0; got < bytes;) {
    ssize_t count = read(descriptor, static_cast<char *>(to) + got, bytes - got);
    if (count == 0)
      break;
    if (count < 0 && errno == EAGAIN) {
      pollfd ready{descriptor, POLLIN, 0};
      poll(&ready, 1, -1);
      continue;
    }
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      return failed("read");
    got += static_cast<uint64_t>(count);
  }
  return {};
}

/// Reads the rest of an open file, up to one block beyond `limit`.
static Failure readAll(int descriptor, uint64_t expected, uint64_t limit, std::string &contents) {
  uint64_t have = 0, got = 0;
  contents.clear();
  do {
    // One byte more than expected, to detect the end in the same read.
    uint64_t wanted = have <= expected ? std::min(expected, limit) - have + 1 : blockBytes;
    contents.resize(have + wanted);
    if (Failure failure = readFrom(descriptor, contents.data() + have, wanted, got); !failure.empty())
      return failure;
    have += got;
    contents.resize(have);
    if (got < wanted)
      return {};
  } while (have <= limit);
  return {};
}

Failure readFile(const std::string &path, Source source, uint64_t limit, std::string &contents) {
  int descriptor = -1;
  uint64_t bytes = 0;
  if (Failure failure = openForReading(path, source, descriptor, bytes); !failure.empty())
    return failure;
  auto tooLarge = [&](const std::string &has) {
    return "has " + has + " bytes; at most " + std::to_string(limit) + " are read";
  };
  Failure failure = bytes > limit ? tooLarge(std::to_string(bytes)) : readAll(descriptor, bytes, limit, contents);
  struct stat facts;
  bool isPipe = fstat(descriptor, &facts) == 0 && S_ISFIFO(facts.st_mode);
  close(descriptor);
  if (failure.empty() && contents.size() > limit)
    return tooLarge("more than " + std::to_string(limit));
  if (failure.empty() && isPipe && contents.empty())
    return "nothing is written to this pipe";
  return failure;
}

} // namespace sluice::files
