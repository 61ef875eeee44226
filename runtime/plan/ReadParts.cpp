// Checks entries with parts after all entries are parsed. Every input of a part must be an input of the entry. Each
// output must come from exactly one part. No part may have more rows than a microbatch.
#include "runtime/base/Text.h"
#include "runtime/plan/ReadFields.h"

#include <algorithm>

namespace sluice::runtime {

namespace {

class PartsChecker {
public:
  PartsChecker(const JsonReader &json, Plan &plan, Entry &entry) : json_(json), plan_(plan), entry_(entry) {}

  void check() {
    if (!entry_.actions.empty())
      json_.at("actions").fail("are not those of its parts alone");
    if (!entry_.hasRows())
      json_.at("parts").fail("are of an entry without rows");
    for (size_t i = 0; i < entry_.parts.size(); ++i)
      checkPart(json_.at("parts").list()[i], entry_.parts[i], i + 1 == entry_.parts.size());
    for (size_t i = 0; i < entry_.inputs.size(); ++i)
      checkRoom(json_.at("inputs").list()[i], entry_.inputs[i]);
    for (size_t i = 0; i < entry_.outputs.size(); ++i)
      if (entry_.outputs[i].rowsDim >= 0) // other outputs are those of the last part
        checkRoom(json_.at("outputs").list()[i], entry_.outputs[i]);
    for (size_t i = 0; i < entry_.outputs.size(); ++i)
      if (!given_[i])
        json_.at("outputs").list()[i].fail("is given by no part");
  }

private:
  void checkPart(const JsonReader &json, const CallPart &part, bool isLast) {
    if (part.entry >= plan_.entries.size())
      json.fail(concat("is entry ", part.entry, " of ", plan_.entries.size()));
    Entry &its = plan_.entries[part.entry];
    if (its.isPart || !its.parts.empty())
      json.fail(concat("is ", quote(its.name), ", which is a part already or has parts"));
    its.isPart = true;
    bool isEach = part.when == CallPart::When::each;
    for (const Value &input : its.inputs)
      findAlike(json, entry_.inputs, input, isEach);
    for (const Value &output : its.outputs) {
      size_t number = findAlike(json, entry_.outputs, output, isEach);
      if (given_[number])
        json.fail(concat("gives ", quote(output.name), ", which another part gives"));
      if (output.rowsDim < 0 && (isEach || !isLast))
        json.fail(concat("gives ", quote(output.name), ", which only the last part may give"));
      given_[number] = true;
    }
    std::vector<ListedAction> all = its.allActions();
    if (isEach && std::any_of(all.begin(), all.end(),
                              [](const ListedAction &listed) { return listed.action->collective() != nullptr; }))
      json.fail("has a collective for each microbatch");
  }

  /// The index of the value with the name and type of `value` in a list of the entry; fails if there is none.
  static size_t findAlike(const JsonReader &json, const std::vector<Value> &list, const Value &value, bool isEach) {
    auto found = std::find_if(list.begin(), list.end(), [&](const Value &other) { return other.name == value.name; });
    if (found == list.end() || found->dtype != value.dtype || found->shape != value.shape ||
        found->rowsDim != value.rowsDim)
      json.fail(concat("has ", quote(value.name), " of type ", typeText(value.dtype, value.shape),
                       ", which its entry lacks"));
    if (!isEach && value.rowsDim >= 0)
      json.fail(concat("is done once a call and has rows of ", quote(value.name)));
    return static_cast<size_t>(found - list.begin());
  }

  /// Checks the host memory of an input or output of a whole call: it exists once, with room for all microbatches.
  void checkRoom(const JsonReader &json, const Value &value) const {
    int64_t needed = elementsOf(value.shape) * static_cast<int64_t>(sizeOf(value.dtype));
    if (value.rowsDim >= 0 && value.bytes / plan_.microbatches < needed)
      json.at("bytes").fail(concat("is ", value.bytes, ", less than ", plan_.microbatches, " microbatches need"));
    if (value.slot.stride != 0)
      json.at("stride").fail("is not 0, but the host has this value once");
  }

  const JsonReader &json_;
  Plan &plan_;
  Entry &entry_;
  std::vector<bool> given_ = std::vector<bool>(entry_.outputs.size());
};

} // namespace

void checkParts(const JsonReader &entries, Plan &plan) {
  std::vector<JsonReader> list = entries.list();
  for (size_t i = 0; i < list.size(); ++i)
    if (!plan.entries[i].parts.empty())
      PartsChecker(list[i], plan, plan.entries[i]).check();
  bool isCut = plan.microbatches > 1 || plan.logicalShards > 0;
  for (size_t i = 0; i < list.size() && isCut; ++i)
    if (const Entry &entry = plan.entries[i]; !entry.isPart && entry.parts.empty() && entry.hasRows())
      list[i].fail(concat("has rows and no parts, and a call may have ", plan.microbatches, " microbatches"));
}

} // namespace sluice::runtime
