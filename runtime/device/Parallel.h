// The parallel entry point of generated code: a team of threads that shares the tasks of a stage.
//
// A TBB arena of exactly N threads is entered once per step. The threads stay in the arena for the whole step, so
// starting a stage costs a fraction of a microsecond instead of 1 to 15. Each thread starts with its own share, the
// same part of every stage, then helps with other shares. The result of a task depends neither on the thread nor on N.
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

  /// Gathers the team, runs `body` on the calling thread, and releases the team. A nested `enter` only runs `body`: a
  /// loop over steps gathers the team once, so that threads are not woken in every step.
  void enter(const std::function<void()> &body);

  /// Runs the tasks [0, tasks), fewer than 2^32, on the team and returns when all are done. Outside `enter` the calling
  /// thread runs all tasks. A task must not call this.
  void forEach(int64_t tasks, RangeFunction function, void *context);

private:
  struct Impl;
  int threads_;
  std::unique_ptr<Impl> impl_;
};

} // namespace sluice::runtime
