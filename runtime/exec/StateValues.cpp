#include "runtime/exec/StateValues.h"

#include "runtime/base/Status.h"
#include "runtime/base/Text.h"

#include <algorithm>

namespace sluice::runtime {

static bool begins(const State &state) { return state.isWeight() || state.kind == StateKind::hyper; }

static bool overlaps(const State &state, const Slot &slot, int64_t bytes) {
  return slot.arena == state.slot.arena && slot.offset < state.slot.offset + state.bytes &&
         state.slot.offset < slot.offset + bytes;
}

static bool isRead(const Action &action, const State &state) {
  std::vector<Buffer> buffers = action.buffers();
  return std::any_of(buffers.begin(), buffers.end(), [&](const Buffer &buffer) {
    return buffer.access != Access::write && overlaps(state, buffer.slot, buffer.bytes);
  });
}

StateValues::StateValues(const Plan &plan) {
  for (const State &state : plan.states)
    known_.push_back(!begins(state));
  for (const Entry &entry : plan.entries) {
    Use &use = uses_.emplace_back();
    std::vector<const Action *> actions; // loops as a whole
    for (const Entry *part : plan.partsOf(entry))
      for (const Action &action : part->actions)
        actions.push_back(&action);
    for (size_t i = 0; i < plan.states.size(); ++i) {
      auto reads = [&](const Action *action) { return isRead(*action, plan.states[i]); };
      auto writes = [&](const Action *action) {
        return plan.writes(*action, plan.states[i].slot, plan.states[i].bytes);
      };
      auto firstRead = std::find_if(actions.begin(), actions.end(), reads);
      auto firstWrite = std::find_if(actions.begin(), actions.end(), writes);
      if (firstRead != actions.end() && firstRead <= firstWrite) // an update in place reads and writes at once
        use.reads.push_back(i);
      if (firstWrite != actions.end())
        use.writes.push_back(i);
    }
  }
}

void StateValues::beforeRun(const Plan &plan, size_t entry) {
  std::vector<std::string> missing;
  for (size_t state : uses_[entry].reads)
    if (!known_[state])
      missing.push_back(quote(plan.states[state].name));
  if (!missing.empty())
    failUsage(concat(quote(plan.entries[entry].name), " reads ", missing.front(),
                     missing.size() > 1 ? concat(" and ", missing.size() - 1, " more") : "",
                     ", which nothing has set: run 'init' first, or set states and load weights"));
  for (size_t state : uses_[entry].writes)
    known_[state] = true;
}

} // namespace sluice::runtime
