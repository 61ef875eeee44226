// The processes that a launcher started to run one model together, as an executable sees them. One that was started alone has
// nothing to do with any of this.
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
  /// Looks for a launcher, chooses the variant, meets the other processes if it started several, says so, and fails in all of
  /// them unless they run the same program with the same verb.
  explicit Processes(const Options &options);

  /// Null if this process is alone.
  ProcessGroup *group() { return group_ ? &*group_ : nullptr; }
  /// Whether results, files and talk are this one's to write.
  bool isFirst() const { return !group_ || group_->isFirst(); }
  /// The options for this process, with the variant that runs: those that are not the first write nothing.
  Options optionsHere(const Options &options) const;
  /// Threads for each of as many processes as this machine has; 0 if it has but one, or the launcher has bound them.
  int threads() const;

  /// Fails in all processes unless all have the same lines and the same states.
  void agree(std::vector<NamedText> lines, const Instance &instance);
  /// What the first one says.
  bool decide(bool here);
  /// The signal by which all end their run, and the process that it came to; 0 as long as there is none.
  struct Ending {
    int32_t signal = 0, rank = 0;
  };
  /// Tells all of a signal that came to one of them, 0 if none has. Gives in how many steps they ask again: as many as the first
  /// one says, and a process that is alone in the next.
  int64_t agreeOnEnding(int signal, int64_t steps);
  const Ending &ending() const { return ending_; }
  /// The error with the rank that is stuck, where a deadline passed and that can be told.
  Status explained(const Status &status);
  /// Ends the run of all.
  void abort();
  /// Waits until all have come to a good end.
  void finish();

private:
  const sluice_artifact *artifact_ = nullptr; ///< the variant that runs
  std::optional<ProcessLaunch> launch_;
  std::optional<ProcessGroup> group_;
  Ending ending_;
};

} // namespace sluice::runtime
