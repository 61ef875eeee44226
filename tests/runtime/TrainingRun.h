// A training run of some executable that is stopped, killed or interrupted, and resumed.
#pragma once

#include "Process.h"
#include "tests/TemporaryFolder.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace sluice::test {

/// `train` in a folder of its own, with a log, checkpoints, and weights at the end.
class TrainingRun {
public:
  /// `flags` are those of `train` that all runs to be compared have in common; a checkpoint is made every `every`
  /// steps.
  TrainingRun(std::string program, std::vector<std::string> flags, int every)
      : program_(std::move(program)), flags_(std::move(flags)), every_(every) {}

  std::vector<std::string> arguments(bool resume, const std::vector<std::string> &more = {}) const;
  ProcessResult run(bool resume, const std::vector<std::string> &more = {}) const;

  const std::string &program() const { return program_; }
  int every() const { return every_; }
  std::string checkpoints() const { return folder_ / "checkpoints"; }
  std::string weights() const { return folder_ / "w.safetensors"; }
  std::string log() const { return folder_ / "log.jsonl"; }

  /// The log without what depends on the clock.
  std::string timelessLog() const;
  /// Epochs that the log has.
  int64_t epochsLogged() const;
  /// Names of the files in the folder of checkpoints, in order; empty before there is one.
  std::vector<std::string> checkpointNames() const;
  /// The step of the newest checkpoint that is whole; 0 if there is none.
  int64_t newestCheckpoint() const;
  /// Whether a checkpoint is half-written, or was when its process was killed.
  bool isHalfWritten() const;

private:
  TemporaryFolder folder_;
  std::string program_;
  std::vector<std::string> flags_;
  int every_;
};

/// Expects the same weights, bit for bit, and the same log.
void expectSameResults(const TrainingRun &run, const TrainingRun &reference);

/// How often, and when, a run is interrupted.
struct Interruptions {
  int signal;
  int most;                                 ///< times
  uint32_t seed;                            ///< of the moments
  std::chrono::duration<double> start = {}; ///< that a process takes before it trains
  std::chrono::duration<double> whole = {}; ///< that an uninterrupted run takes
  bool inCheckpoints = false;               ///< every other one comes while a checkpoint is half-written
};

struct Hits {
  int all = 0;           ///< processes that the signal ended
  int inCheckpoints = 0; ///< of these, those that left a checkpoint half-written
};

/// Starts, sends the signal after a random while, and resumes, until the run ends by itself; the moments spread over
/// the whole run, however fast this machine is. `afterEach` is called after each process that the signal ended.
Hits runWithInterruptions(const TrainingRun &run, const Interruptions &interruptions,
                          const std::function<void()> &afterEach = {});

} // namespace sluice::test
