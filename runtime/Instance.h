// A model that runs: the arenas of a plan and the team of threads that works in them.
#ifndef SLUICE_RUNTIME_INSTANCE_H
#define SLUICE_RUNTIME_INSTANCE_H

#include "runtime/Memory.h"
#include "runtime/Parallel.h"
#include "runtime/Plan.h"

#include <span>
#include <string_view>
#include <vector>

namespace sluice::runtime {

struct InstanceOptions {
  int threads = 0;    ///< 0: every processor
  std::string device; ///< a device's name or backend that must be among the plan's; empty: whatever the plan says
};

class Instance {
public:
  /// Allocates the arenas; every state is zero until `init` runs or it is set. `artifact` must outlive the instance.
  Instance(const sluice_artifact &artifact, const InstanceOptions &options);

  const Plan &plan() const { return plan_; }
  int threads() const { return team_.threads(); }
  Team &team() { return team_; }

  /// The entry, state, input or output called `name`; a usage error that lists the names if there is none.
  const Entry &entry(std::string_view name) const;
  const State &state(std::string_view name) const;

  /// Copies a state in and out in its logical, row-major form.
  void setState(const State &state, std::span<const std::byte> logical);
  void getState(const State &state, std::span<std::byte> logical) const;

  /// Copies the first `rows` rows of an input in, row-major. A run may reuse the memory of its inputs: set them before
  /// each.
  void setInput(const Value &input, std::span<const std::byte> data, int64_t rows);
  /// Copies the first `rows` rows of an output out, row-major; valid until the next run.
  void getOutput(const Value &output, std::span<std::byte> data, int64_t rows) const;
  /// Where a value lies; row r of an input whose rows are dimension 0 is at r * bytes / capacity.
  std::byte *address(const Value &value) const { return address(value.slot); }
  /// Where a state lies, in its physical form of `state.bytes` bytes.
  std::byte *address(const State &state) const { return address(state.slot); }

  /// Bytes of `value` in a call with `rows` rows.
  int64_t bytesFor(const Value &value, int64_t rows) const;

  /// Fails unless 0 < rows <= capacity, or the entry has no batch dimension.
  void checkRows(const Entry &entry, int64_t rows) const;

  /// Runs an entry on `rows` rows, which must satisfy `checkRows`. If `times` has one element per launch, the seconds
  /// of each launch are added to it.
  void run(const Entry &entry, int64_t rows, std::span<double> times = {});

private:
  std::byte *address(const Slot &slot) const { return arenas_[slot.arena] + slot.offset; }
  void launch(const Launch &launch, int64_t rows);

  Plan plan_;
  const sluice_artifact &artifact_;
  std::vector<Memory> memory_;
  std::vector<std::byte *> arenas_;
  std::vector<void *> buffers_; ///< of the launch at hand
  Team team_;
};

} // namespace sluice::runtime

#endif
