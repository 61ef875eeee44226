// The launches of an entry point that run on the host, with every address worked out: what a call does, and no more.
#ifndef SLUICE_RUNTIME_HOSTPROGRAM_H
#define SLUICE_RUNTIME_HOSTPROGRAM_H

#include "runtime/device/Parallel.h"
#include "runtime/plan/Plan.h"

#include <array>
#include <functional>
#include <span>
#include <vector>

namespace sluice::runtime {

/// One stage of a launch.
struct HostStage {
  sluice_stage_fn function;
  const Stage *stage;
};

/// One launch of a kernel with stages.
class HostLaunch {
public:
  /// `arenas` are the addresses of the plan's arenas. `plan` must outlive this.
  HostLaunch(const Launch &launch, const Plan &plan, const sluice_artifact &artifact,
             std::span<std::byte *const> arenas);

  /// Runs call number `call`.
  void run(Team &team, int64_t call, int64_t rows) const;

  const std::vector<HostStage> &stages() const { return stages_; }

private:
  std::vector<HostStage> stages_;
  std::array<std::vector<void *>, 2> buffers_; ///< of even and of odd calls
};

/// Called after each action of a call, when its work is done and before anything else runs: with the entry point and
/// the action's number.
using Watcher = std::function<void(const Entry &entry, size_t action)>;

/// An entry point whose actions are launches on the host. They run one after another, in the order of the list, so that
/// nothing needs to wait.
class HostProgram {
public:
  HostProgram(const Entry &entry, const Plan &plan, const sluice_artifact &artifact,
              std::span<std::byte *const> arenas);

  /// Runs call number `call`. If `times` has one element per launch, the seconds of each are added to it.
  void run(Team &team, int64_t call, int64_t rows, std::span<double> times, const Watcher &watcher = {}) const;

private:
  const Entry *entry_;
  std::vector<HostLaunch> launches_;
};

} // namespace sluice::runtime

#endif
