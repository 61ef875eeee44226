// The one parallel entry of generated code: a team of threads that shares out the tasks of a stage.
//
// A TBB arena of exactly N threads is entered once per step; inside it the team stays together, so that a stage costs a
// fraction of a microsecond to start instead of one to fifteen. Each thread begins with its own share of the tasks, the
// same part of every stage, and helps with the others' when it is done; what a task does depends on neither, so results
// do not depend on N.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

namespace sluice::runtime {

/// Runs the tasks [begin, end).
using RangeFunction = void (*)(void *context, int64_t begin, int64_t end);

/// Processors that this process may run on.
int availableThreads();

class Team {
public:
  explicit Team(int threads);
  ~Team();

  int threads() const { return threads_; }

  /// Gathers the team, runs `body` on the calling thread, and lets the team go. Within another `enter` it just runs
  /// `body`: a loop over steps gathers the team once, so that it need not be woken for every step.
  void enter(const std::function<void()> &body);

  /// Runs the tasks [0, tasks), fewer than 2^32, on the team and returns when all are done. Outside `enter` the calling
  /// thread runs them all. A task must not call this.
  void forEach(int64_t tasks, RangeFunction function, void *context);

private:
  struct Impl;
  int threads_;
  std::unique_ptr<Impl> impl_;
};

} // namespace sluice::runtime
