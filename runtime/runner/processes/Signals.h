// SIGINT and SIGTERM end a run between two steps, so that the step completes and is checkpointed.
#pragma once

namespace sluice::runtime {

/// The first signal is only recorded from now on. A later signal, unless it belongs to the same request, ends the
/// process immediately.
void catchSignals();

/// The recorded signal, or 0.
int caughtSignal();

} // namespace sluice::runtime
