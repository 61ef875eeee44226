// Checks derived states and their derivations after all entries are parsed, so that no call reads a derived state that
// is older than its sources, and no derivation calls another one.
#include "runtime/base/Text.h"
#include "runtime/plan/ReadFields.h"
#include "runtime/plan/StatePlaces.h"

#include <algorithm>
#include <set>

namespace sluice::runtime {

namespace {

class DerivationsChecker {
public:
  DerivationsChecker(const JsonReader &entries, const JsonReader &states, Plan &plan)
      : entries_(entries.list()), states_(states.list()), plan_(plan), places_(plan), writer_(plan.states.size()) {}

  void check() {
    for (size_t i = 0; i < plan_.states.size(); ++i)
      checkSources(states_[i], plan_.states[i]);
    for (size_t i = 0; i < plan_.entries.size(); ++i)
      for (size_t derivation : plan_.entries[i].derivations)
        markDerivation(entries_[i].at("derivations"), derivation);
    for (size_t i = 0; i < plan_.entries.size(); ++i)
      checkWrites(entries_[i], i);
    for (size_t i = 0; i < plan_.states.size(); ++i)
      if (isDerived(i) && !writer_[i])
        states_[i].fail("is derived, and no derivation writes it");
    for (size_t i = 0; i < plan_.entries.size(); ++i)
      checkReads(entries_[i], i);
    for (size_t i = 0; i < plan_.entries.size(); ++i)
      checkInputs(entries_[i], plan_.entries[i]);
  }

private:
  bool isDerived(size_t state) const { return plan_.states[state].isDerived(); }

  void checkSources(const JsonReader &json, const State &state) const {
    bool derived = state.isDerived();
    if (derived == state.sources.empty())
      json.fail(derived ? "is derived, but has no 'sources'" : "has 'sources', but is not derived");
    for (size_t source : state.sources)
      if (source >= plan_.states.size() || isDerived(source))
        json.at("sources").fail(concat("has ", source, ", which is no state, or is derived"));
    if (derived && (state.initial || state.isSharded()))
      json.fail("is derived, but has initial data or shards");
  }

  void markDerivation(const JsonReader &json, size_t number) {
    if (number >= plan_.entries.size())
      json.fail(concat("has entry ", number, " of ", plan_.entries.size()));
    Entry &its = plan_.entries[number];
    if (!its.inputs.empty() || !its.outputs.empty() || !its.parts.empty() || !its.derivations.empty() || its.isPart)
      json.fail(concat("has ", quote(its.name), ", which has inputs, outputs, parts or derivations, or is a part"));
    std::vector<ListedAction> all = its.allActions();
    if (std::any_of(all.begin(), all.end(), [](const ListedAction &item) { return item.action->collective(); }))
      json.fail(concat("has ", quote(its.name), ", which has a collective"));
    its.isDerivation = true;
  }

  /// Each derived state is written by one derivation, which writes no other states.
  void checkWrites(const JsonReader &json, size_t entry) {
    for (size_t state : statesOf(entry, /*isWritten=*/true)) {
      if (isDerived(state) != plan_.entries[entry].isDerivation)
        json.fail(concat("writes ", quote(plan_.states[state].name), ", but ",
                         isDerived(state) ? "only a derivation writes a derived state"
                                          : "a derivation writes only derived states"));
      if (isDerived(state) && writer_[state])
        json.fail(concat("writes ", quote(plan_.states[state].name), ", which another derivation writes"));
      if (isDerived(state)) {
        writer_[state] = entry;
        plan_.states[state].derivation = entry;
      }
    }
  }

  void checkReads(const JsonReader &json, size_t entry) const {
    const Entry &its = plan_.entries[entry];
    std::set<size_t> sources;
    for (size_t state = 0; state < plan_.states.size(); ++state)
      if (its.isDerivation && writer_[state] == entry)
        sources.insert(plan_.states[state].sources.begin(), plan_.states[state].sources.end());
    for (size_t state : statesOf(entry, /*isWritten=*/false)) {
      const std::string name = quote(plan_.states[state].name);
      if (its.isDerivation && writer_[state] != entry && !sources.contains(state))
        json.fail(concat("reads ", name, ", which is no source of the derived states that it computes"));
      bool isListed = writer_[state] && std::find(its.derivations.begin(), its.derivations.end(), *writer_[state]) !=
                                            its.derivations.end();
      if (isDerived(state) && !its.isDerivation && !isListed)
        json.fail(concat("reads ", name, ", but 'derivations' lacks the derivation of this state"));
    }
  }

  /// The host writes the inputs of a call before its derivations run, so these must leave them.
  void checkInputs(const JsonReader &json, const Entry &entry) const {
    for (const Entry *part : plan_.partsOf(entry))
      for (size_t derivation : part->derivations)
        for (const Action &action : plan_.entries[derivation].actions)
          for (const Value &input : entry.inputs)
            if (plan_.writes(action, input.slot, input.bytes))
              json.fail(concat("has the input ", quote(input.name), ", which the derivation ",
                               quote(plan_.entries[derivation].name), " overwrites"));
  }

  /// The states that the actions of an entry write, or read.
  std::set<size_t> statesOf(size_t entry, bool isWritten) const {
    std::set<size_t> states;
    for (const Action &action : plan_.entries[entry].actions)
      for (const Buffer &buffer : action.buffers())
        if (isWritten ? buffer.isWritten() : buffer.access != Access::write)
          places_.forEachInFlight(buffer.slot, buffer.bytes, [&](size_t state) { states.insert(state); });
    return states;
  }

  std::vector<JsonReader> entries_, states_;
  Plan &plan_;
  StatePlaces places_;
  std::vector<std::optional<size_t>> writer_; ///< by state: the derivation that writes it
};

} // namespace

void checkDerivations(const JsonReader &entries, const JsonReader &states, Plan &plan) {
  DerivationsChecker(entries, states, plan).check();
}

} // namespace sluice::runtime
