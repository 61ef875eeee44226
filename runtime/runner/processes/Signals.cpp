#include "runtime/runner/processes/Signals.h"

#include <csignal>
#include <ctime>
#include <unistd.h>

namespace sluice::runtime {

/// See `catchSignals`.
static constexpr time_t kSecondsOfOneRequest = 2;

static volatile std::sig_atomic_t caught = 0;
static volatile time_t caughtAt = 0;

extern "C" void sluiceRememberSignal(int signal) {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  if (caught == 0)
    caughtAt = now.tv_sec;
  else if (now.tv_sec - caughtAt >= kSecondsOfOneRequest)
    _exit(128 + signal);
  if (caught == 0)
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
