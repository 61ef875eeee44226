#include "runtime/files/Process.h"

#include <csignal>
#include <fcntl.h>
#include <unistd.h>

namespace sluice::files {

void prepareProcess() {
  // Each is opened for what it is not used for, but talk may go nowhere.
  static constexpr int modes[] = {O_WRONLY, O_RDONLY, O_WRONLY};
  for (int descriptor = STDIN_FILENO; descriptor <= STDERR_FILENO; ++descriptor)
    if (fcntl(descriptor, F_GETFD) < 0) {
      int opened = open("/dev/null", modes[descriptor]); // the lowest that is free
      if (opened < 0)
        open("/", O_PATH);
    }
  std::signal(SIGXFSZ, SIG_IGN);
}

} // namespace sluice::files
