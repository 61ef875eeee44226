#include "runtime/instance/StateValues.h"

#include "runtime/base/Status.h"
#include "runtime/base/Text.h"
#include "runtime/plan/StatePlaces.h"

#include <algorithm>

namespace sluice::runtime {

/// Whether a state has no value at first.
static bool begins(const State &state) {
  return state.isWeight() || state.kind == StateKind::hyperparameter || state.kind == StateKind::scales;
}

namespace {
/// Indices of the first actions that read and write a state.
struct FirstUse {
  size_t read = SIZE_MAX, write = SIZE_MAX;
};
} // namespace

/// The first uses of each state by `actions`, in which a loop counts as one action.
static std::vector<FirstUse> firstUses(const Plan &plan, const StatePlaces &places,
                                       const std::vector<const Action *> &actions) {
  std::vector<FirstUse> uses(plan.states.size());
  for (size_t number = 0; number < actions.size(); ++number)
    for (const Buffer &buffer : actions[number]->buffers()) {
      if (buffer.access != Access::write)
        places.forEach(buffer.slot, buffer.bytes,
                       [&](size_t state) { uses[state].read = std::min(uses[state].read, number); });
      if (buffer.isWritten())
        places.forEachInFlight(buffer.slot, buffer.bytes,
                               [&](size_t state) { uses[state].write = std::min(uses[state].write, number); });
    }
  return uses;
}

/// Adds the actions of an entry after those of the derivations that it needs.
static void addActions(const Plan &plan, const Entry &entry, std::vector<const Action *> &actions) {
  for (size_t derivation : entry.derivations)
    addActions(plan, plan.entries[derivation], actions);
  for (const Action &action : entry.actions)
    actions.push_back(&action);
}

StateValues::StateValues(const Plan &plan) {
  for (const State &state : plan.states)
    known_.push_back(!begins(state));
  StatePlaces places(plan);
  for (const Entry &entry : plan.entries) {
    Use &use = uses_.emplace_back();
    std::vector<const Action *> actions;
    for (const Entry *part : plan.partsOf(entry))
      addActions(plan, *part, actions);
    std::vector<FirstUse> uses = firstUses(plan, places, actions);
    for (size_t i = 0; i < plan.states.size(); ++i) {
      if (uses[i].read != SIZE_MAX && uses[i].read <= uses[i].write) // equal: an action reads the state and updates it
        use.reads.push_back(i);
      if (uses[i].write != SIZE_MAX)
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
