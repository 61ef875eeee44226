// A training run of an executable that is stopped, killed or interrupted, and resumed.
#pragma once

#include "Process.h"
#include "tests/TemporaryFolder.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace sluice::test {

/// `train` in a separate folder, with a log, checkpoints, and final weights.
class TrainingRun {
public:
  /// `flags` are the flags of `train` common to all compared runs; a checkpoint is written every `every` steps.
  TrainingRun(std::string program, std::vector<std::string> flags, int every)
      : program_(std::move(program)), flags_(std::move(flags)), every_(every) {}

  std::vector<std::string> arguments(bool resume, const std::vector<std::string> &more = {}) const;
  ProcessResult run(bool resume, const std::vector<std::string> &more = {}) const;

  const std::string &program() const { return program_; }
  int every() const { return every_; }
  std::string checkpoints() const { return folder_ / "checkpoints"; }
  std::string weights() const { return folder_ / "w.safetensors"; }
  std::string log() const { return folder_ / "log.jsonl"; }

  /// The log without times.
  std::string timelessLog() const;
  /// Number of epochs in the log.
  int64_t epochsLogged() const;
  /// Sorted names of the files in the checkpoint folder; empty if it does not exist.
  std::vector<std::string> checkpointNames() const;
  /// The step of the newest complete checkpoint; 0 if there is none.
  int64_t newestCheckpoint() const;
  /// Whether a partial checkpoint exists, from a running or a killed process.
  bool isHalfWritten() const;

private:
  TemporaryFolder folder_;
  std::string program_;
  std::vector<std::string> flags_;
  int every_;
};

/// Expects bitwise equal weights, and equal logs.
void expectSameResults(const TrainingRun &run, const TrainingRun &reference);

/// Number and times of a run's interruptions.
struct Interruptions {
  int signal;
  int most;                                 ///< maximum number
  uint32_t seed;                            ///< seed of the random times
  std::chrono::duration<double> start = {}; ///< time of a process before training
  std::chrono::duration<double> whole = {}; ///< time of an uninterrupted run
  bool inCheckpoints = false;               ///< every second interruption hits a partially written checkpoint
};

struct Hits {
  int all = 0;           ///< processes ended by the signal
  int inCheckpoints = 0; ///< of these, processes that left a partial checkpoint
};

/// Starts the run, sends the signal after a random time, and resumes, until the run completes. The times cover the
/// whole run, whatever the machine's speed. `afterEach` is called after each process that the signal ended.
Hits runWithInterruptions(const TrainingRun &run, const Interruptions &interruptions,
                          const std::function<void()> &afterEach = {});

} // namespace sluice::test
