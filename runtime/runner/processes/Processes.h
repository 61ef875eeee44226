// The executable's view of the processes that a launcher started to run one model. A process without a launcher needs
// none of this.
#pragma once

#include "runtime/instance/Instance.h"
#include "runtime/launch/ProcessGroup.h"
#include "runtime/launch/ProcessLaunch.h"
#include "runtime/runner/session/Options.h"

#include <optional>
#include <string>
#include <vector>

namespace sluice::runtime {

class Processes {
public:
  /// Detects a launcher and chooses the variant. If there are several processes, connects to the others, and prints the
  /// launch in the first. Fails in all processes unless they run the same program with the same verb.
  explicit Processes(const Options &options);

  /// Null if this is the only process.
  ProcessGroup *group() { return group_ ? &*group_ : nullptr; }
  /// Whether this process writes results, files and progress.
  bool isFirst() const { return !group_ || group_->isFirst(); }
  /// This process's options, with the chosen variant. Processes other than the first write no output.
  Options optionsHere(const Options &options) const;
  /// This process's share of the machine's threads; 0 if it is alone on the machine, or if the launcher has bound the
  /// processes.
  int threads() const;

  /// Fails in all processes unless all have the same lines and the same states.
  void agree(std::vector<NamedText> lines, const Instance &instance);
  /// Returns the first process's value in all processes.
  bool decide(bool here);
  /// The signal that ends the run, and the process that received it. Signal 0: none.
  struct Ending {
    int32_t signal = 0, rank = 0;
  };
  /// Shares the signal that a process has received with all processes; 0: none. All call it after the same step.
  /// `ending` then returns the result. Returns the number of steps until the next exchange: the first process's
  /// `steps`, or 1 for a single process.
  int64_t agreeOnEnding(int signal, int64_t steps);
  const Ending &ending() const { return ending_; }
  /// Adds the stuck rank to a deadline error, if it can be determined.
  Status explained(const Status &status);
  /// Aborts the run in all processes.
  void abort();
  /// Waits until all processes have finished successfully.
  void finish();

private:
  const sluice_artifact *artifact_ = nullptr; ///< the chosen variant
  std::optional<ProcessLaunch> launch_;
  std::optional<ProcessGroup> group_;
  Ending ending_;
};

} // namespace sluice::runtime
