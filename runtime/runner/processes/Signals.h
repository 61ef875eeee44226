// SIGINT and SIGTERM end a run between two steps, so that the step is finished and checkpointed.
#pragma once

namespace sluice::runtime {

/// From now on the first signal is only remembered; another that does not come with it ends the process at once.
void catchSignals();

/// The signal that came, or 0.
int caughtSignal();

} // namespace sluice::runtime
