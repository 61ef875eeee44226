// SIGINT and SIGTERM end a run between two steps, so that the step completes and is checkpointed.
#pragma once

namespace sluice::runtime {

/// From now on, the first signal is only recorded. A signal 2 s or more later ends the process immediately. Signals in
/// between count as the same request: a launcher may forward a signal that its processes also received directly.
void catchSignals();

/// The recorded signal, or 0.
int caughtSignal();

} // namespace sluice::runtime
