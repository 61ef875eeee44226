#include "runtime/plan/Plan.h"

#include "runtime/base/Text.h"

#include <algorithm>

namespace sluice::runtime {

template <typename Named> static const Named *find(const std::vector<Named> &list, std::string_view name) {
  for (const Named &item : list)
    if (item.name == name)
      return &item;
  return nullptr;
}

bool Value::takesIndex(double number) const {
  return (number >= 0 && number < static_cast<double>(below)) || (ignored && number == static_cast<double>(*ignored));
}

std::string Value::indicesText() const {
  return concat(below, " classes 0 to ", below - 1, ignored ? concat(" and the ignored ", *ignored) : "");
}

Shape Value::shapeFor(int64_t rows, int64_t capacity) const {
  Shape used = shape;
  if (rowsDim >= 0 && capacity > 0) {
    int64_t &size = used[static_cast<size_t>(rowsDim)];
    size = size / capacity * rows;
  }
  return used;
}

bool Loop::operator==(const Loop &other) const {
  return name == other.name && source == other.source && count == other.count && condition == other.condition &&
         actions == other.actions;
}

std::span<const Copy> Action::copies() const {
  if (const Copy *one = copy())
    return {one, 1};
  if (const Exchange *two = exchange())
    return two->copies;
  return {};
}

std::vector<Buffer> Action::buffers() const {
  if (const Launch *one = launch())
    return one->buffers;
  std::vector<Buffer> touched;
  if (const Collective *one = collective())
    touched = {{one->send.slot, one->send.bytes, Access::read}, {one->receive.slot, one->receive.bytes, Access::write}};
  for (const Copy &copy : copies()) {
    touched.push_back({copy.from, copy.capacityBytes, Access::read});
    touched.push_back({copy.to, copy.capacityBytes, Access::write});
  }
  if (const Loop *many = loop(); many && many->condition)
    touched.push_back({*many->condition, 1, Access::read});
  if (const Loop *many = loop())
    for (const Action &action : many->actions)
      for (const Buffer &buffer : action.buffers())
        touched.push_back(buffer);
  return touched;
}

static void addActions(const std::vector<Action> &actions, int64_t times, std::vector<ListedAction> &into) {
  for (const Action &action : actions) {
    into.push_back({&action, times});
    if (const Loop *loop = action.loop())
      addActions(loop->actions, times * loop->count, into);
  }
}

std::vector<ListedAction> listActions(const std::vector<Action> &actions) {
  std::vector<ListedAction> all;
  addActions(actions, 1, all);
  return all;
}

bool Entry::hasRows() const {
  auto isBatched = [](const Value &value) { return value.rowsDim >= 0; };
  return std::any_of(inputs.begin(), inputs.end(), isBatched) || std::any_of(outputs.begin(), outputs.end(), isBatched);
}

std::vector<const Launch *> Entry::launches() const {
  std::vector<const Launch *> found;
  for (const ListedAction &listed : allActions())
    if (const Launch *launch = listed.action->launch())
      found.push_back(launch);
  return found;
}

const Value *Entry::findInput(std::string_view wanted) const { return find(inputs, wanted); }
const Value *Entry::findOutput(std::string_view wanted) const { return find(outputs, wanted); }

const Entry *Plan::findEntry(std::string_view name) const {
  const Entry *found = find(entries, name);
  return found && found->isCallable() ? found : nullptr;
}

const State *Plan::findState(std::string_view name) const { return find(states, name); }

const State *Plan::scalesOf(const State &state) const {
  if (state.kind != StateKind::parameter || state.dtype != DType::u8)
    return nullptr;
  auto found = std::ranges::find_if(
      states, [&](const State &other) { return other.kind == StateKind::scales && other.of == state.name; });
  return found == states.end() ? nullptr : &*found;
}

std::vector<std::string> Plan::entryNames() const {
  std::vector<std::string> names;
  for (const Entry &entry : entries)
    if (entry.isCallable())
      names.push_back(entry.name);
  return names;
}

std::vector<const Entry *> Plan::partsOf(const Entry &entry) const {
  if (entry.parts.empty())
    return {&entry};
  std::vector<const Entry *> list;
  for (const CallPart &part : entry.parts)
    list.push_back(&entries[part.entry]);
  return list;
}

std::vector<int64_t> Plan::timesOf(const Entry &entry, int64_t microbatches) const {
  if (entry.parts.empty())
    return {1};
  std::vector<int64_t> times;
  for (const CallPart &part : entry.parts)
    times.push_back(part.when == CallPart::When::each ? microbatches : 1);
  return times;
}

int64_t Plan::microbatchesFor(const Entry &entry, int64_t rows) const {
  if (entry.parts.empty())
    return 1;
  if (logicalShards > 0)
    return microbatches;
  int64_t among = std::max<int64_t>(replicas, 1), most = (rows + among - 1) / among;
  return (most + capacity - 1) / capacity;
}

int64_t Plan::roomOf(const Value &value) const {
  return entries[value.entry].parts.empty() ? capacity : capacity * microbatches;
}

std::vector<ListedAction> Plan::actionsOf(const Entry &entry, int64_t microbatches) const {
  std::vector<ListedAction> all;
  std::vector<const Entry *> parts = partsOf(entry);
  std::vector<int64_t> times = timesOf(entry, microbatches);
  for (size_t i = 0; i < parts.size(); ++i)
    addActions(parts[i]->actions, times[i], all);
  return all;
}

bool Plan::hasCollectives() const {
  return std::any_of(entries.begin(), entries.end(), [](const Entry &entry) {
    std::vector<ListedAction> all = entry.allActions();
    return std::any_of(all.begin(), all.end(), [](const ListedAction &listed) { return listed.action->collective(); });
  });
}

int64_t Plan::parameterCount() const {
  int64_t count = 0;
  for (const State &state : states)
    if (state.kind == StateKind::parameter)
      count += state.elements();
  return count;
}

int64_t Plan::peakBytes(size_t device) const {
  int64_t peak = 0;
  for (const Entry &entry : entries)
    peak = std::max(peak, entry.peakBytes[device]);
  return peak;
}

bool Plan::overlap(const Buffer &a, const Buffer &b) const {
  if (a.slot.arena != b.slot.arena)
    return false;
  for (int64_t aCopy = 0; aCopy < inFlight; ++aCopy)
    for (int64_t bCopy = 0; bCopy < inFlight; ++bCopy)
      if (a.slot.offsetOf(aCopy) < b.slot.offsetOf(bCopy) + b.bytes &&
          b.slot.offsetOf(bCopy) < a.slot.offsetOf(aCopy) + a.bytes)
        return true;
  return false;
}

bool Plan::writes(const Action &action, const Slot &slot, int64_t bytes) const {
  std::vector<Buffer> buffers = action.buffers();
  return std::any_of(buffers.begin(), buffers.end(),
                     [&](const Buffer &buffer) { return buffer.isWritten() && overlap(buffer, {slot, bytes}); });
}

uint64_t Plan::stateHash() const {
  uint64_t hash = 0xcbf29ce484222325u; // FNV-1a
  auto add = [&](std::string_view text) {
    for (char c : text)
      hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
    hash = (hash ^ 0xffu) * 0x100000001b3u;
  };
  for (const State &state : states) {
    if (!state.isKept())
      continue;
    add(state.name);
    add(nameOf(state.kind));
    add(typeText(state.dtype, state.shape));
  }
  return hash;
}

} // namespace sluice::runtime
