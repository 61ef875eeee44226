#include "runtime/runner/Signals.h"

#include <csignal>
#include <unistd.h>

namespace sluice::runtime {

static volatile std::sig_atomic_t caught = 0;

extern "C" void sluiceRememberSignal(int signal) {
  if (caught != 0)
    _exit(128 + signal);
  caught = signal;
}

void catchSignals() {
  struct sigaction action = {};
  action.sa_handler = sluiceRememberSignal;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

int caughtSignal() { return caught; }

} // namespace sluice::runtime
