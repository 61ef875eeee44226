#include "runtime/files/Process.h"

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <new>
#include <sys/mman.h>
#include <sys/uio.h>
#include <system_error>
#include <unistd.h>

namespace sluice::files {

static constexpr int exhaustedCode = 5;

void endExhausted(const char *message) {
  const char *parts[] = {program_invocation_short_name, ": error: ", message, "\n"};
  iovec text[4];
  for (int i = 0; i < 4; ++i)
    text[i] = {const_cast<char *>(parts[i]), std::strlen(parts[i])};
  [[maybe_unused]] ssize_t written = writev(STDERR_FILENO, text, 4);
  _exit(exhaustedCode);
}

bool memoryIsLeft(size_t bytes) {
  void *memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return memory != MAP_FAILED && munmap(memory, bytes) == 0;
}

const char *shortageIn(const std::exception &error) {
  if (dynamic_cast<const std::bad_alloc *>(&error))
    return "out of memory";
  const auto *system = dynamic_cast<const std::system_error *>(&error);
  bool isShortage = system && (system->code() == std::errc::resource_unavailable_try_again ||
                               system->code() == std::errc::not_enough_memory);
  isShortage |= std::strstr(error.what(), "pthread_create") != nullptr; // the message of TBB's exception
  return isShortage ? "out of memory: a thread cannot be started" : nullptr;
}

[[noreturn]] static void endUncaught() {
  if (std::exception_ptr thrown = std::current_exception()) {
    try {
      std::rethrow_exception(thrown);
    } catch (const std::exception &error) {
      if (const char *shortage = shortageIn(error))
        endExhausted(shortage);
    } catch (...) { // handled below
    }
  }
  std::abort();
}

void prepareProcess() {
  // `open` returns the lowest free descriptor, which is the closed one. O_PATH permits neither reads nor writes, so
  // writing to a closed standard output still fails. Standard error goes to /dev/null if possible.
  for (int descriptor = STDIN_FILENO; descriptor <= STDERR_FILENO; ++descriptor)
    if (fcntl(descriptor, F_GETFD) < 0 && (descriptor != STDERR_FILENO || open("/dev/null", O_WRONLY) < 0))
      open("/", O_PATH);
  std::signal(SIGXFSZ, SIG_IGN);
  std::set_terminate(endUncaught);
}

} // namespace sluice::files
