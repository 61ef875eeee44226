#include "runtime/io/File.h"

#include "runtime/base/Status.h"
#include "runtime/base/Text.h"
#include "runtime/files/InputFile.h"

#include <cerrno>
#include <cstring>
#include <unistd.h>

namespace sluice::runtime {

void failSystem(const std::string &path, const char *action) {
  int error = errno;
  failInvalid(concat(path, ": cannot ", action, ": ", std::strerror(error)));
}

void check(const std::string &path, const files::Failure &failure) {
  if (!failure.empty())
    failInvalid(concat(path, ": ", failure));
}

namespace {
/// Closes a descriptor, also on exceptions.
struct Closer {
  int descriptor;
  ~Closer() { close(descriptor); }
};
} // namespace

Bytes readFile(const std::string &path) {
  int descriptor = -1;
  uint64_t bytes = 0, got = 0;
  check(path, files::openForReading(path, files::Source::regular, descriptor, bytes));
  Closer closer{descriptor};
  Bytes content(static_cast<size_t>(bytes));
  check(path, files::readFrom(descriptor, content.data(), bytes, got));
  if (got < bytes)
    failInvalid(concat(path, ": shrank from ", bytes, " to ", got, " bytes while it was read"));
  return content;
}

} // namespace sluice::runtime
