// Parses and checks one entry point of a plan: its inputs, outputs and actions.
#include "runtime/base/Text.h"
#include "runtime/plan/ReadFields.h"

#include <algorithm>
#include <set>

namespace sluice::runtime {

namespace {

class EntryReader {
public:
  EntryReader(const JsonReader &json, const Plan &plan) : json_(json), plan_(plan) {}

  Entry parse() {
    entry_.name = json_.at("name").string();
    size_t actions = json_.at("actions").list().size();
    for (const JsonReader &item : json_.at("inputs").list())
      entry_.inputs.push_back(parseInput(item, actions));
    for (const JsonReader &item : json_.at("outputs").list())
      entry_.outputs.push_back(parseValue(item));
    entry_.actions = parseActions(json_.at("actions"), {plan_.inFlight});
    for (const JsonReader &item : json_.at("peak_bytes").list())
      entry_.peakBytes.push_back(item.integer(0, mostBytes));
    if (entry_.peakBytes.size() != plan_.devices.size())
      json_.at("peak_bytes")
          .fail(concat("has ", entry_.peakBytes.size(), " numbers for ", plan_.devices.size(), " devices"));
    if (json_.has("parts"))
      for (const JsonReader &item : json_.at("parts").list())
        entry_.parts.push_back(parsePart(item));
    if (json_.has("derivations"))
      for (const JsonReader &item : json_.at("derivations").list())
        entry_.derivations.push_back(static_cast<size_t>(item.integer(0, INT32_MAX)));
    checkUniqueNames(json_.at("inputs"), entry_.inputs);
    checkUniqueNames(json_.at("outputs"), entry_.outputs);
    return std::move(entry_);
  }

private:
  /// The entry's index is checked after all entries are parsed.
  static CallPart parsePart(const JsonReader &json) {
    std::vector<JsonReader> fields = json.list();
    if (fields.size() != 2)
      json.fail(concat("has ", fields.size(), " fields, not 2"));
    return {static_cast<size_t>(fields[0].integer(0, INT32_MAX)),
            parseEnum<CallPart::When>(fields[1], CallPart::whenNames)};
  }

  Value parseValue(const JsonReader &json) const {
    Value value;
    value.name = json.at("name").string();
    value.dtype = parseDType(json.at("dtype"));
    value.shape = parseShape(json.at("shape"), value.dtype);
    value.rowsDim =
        json.has("rows_dim")
            ? static_cast<int>(json.at("rows_dim").integer(-1, static_cast<int64_t>(value.shape.size()) - 1))
            : -1;
    if (value.rowsDim >= 0) {
      int64_t size = value.shape[static_cast<size_t>(value.rowsDim)];
      if (plan_.capacity == 0 || size % plan_.capacity != 0)
        json.at("rows_dim").fail(concat("size ", size, " is not a multiple of the capacity ", plan_.capacity));
    }
    value.layout = parseLayout(json, value.shape);
    value.bytes = parseTensorBytes(json, physicalShape(value.shape, value.layout), value.dtype);
    value.slot = parseSlot(json, plan_, value.bytes);
    value.entry = plan_.entries.size();
    if (plan_.deviceOf(value.slot) != 0 && (plan_.replicas != 1 || plan_.microbatches > 1 || plan_.logicalShards > 0))
      json.at("arena").fail(
          "is not on the host, where inputs and outputs of replicas, microbatches and logical shards lie");
    return value;
  }

  Value parseInput(const JsonReader &json, size_t actions) const {
    Value value = parseValue(json);
    if (plan_.arenas[value.slot.arena].isConstant())
      json.at("arena").fail("an input cannot lie among the constants");
    if (plan_.deviceOf(value.slot) != 0 && value.slot.stride != 0)
      json.at("stride").fail("is not 0, but an input on an accelerator exists once");
    if (json.has("below"))
      value.below = json.at("below").integer(1, mostBytes);
    if (value.below > 0 && isFloat(value.dtype))
      json.at("below").fail(concat("counts classes, but the input is ", nameOf(value.dtype)));
    if (json.has("ignored"))
      value.ignored = json.at("ignored").integer(INT32_MIN, INT32_MAX);
    if (value.ignored && value.below == 0)
      json.at("ignored").fail("is given without 'below'");
    value.isUnread = json.has("unread") && json.at("unread").integer(0, 1) == 1;
    if (json.has("waits"))
      for (const JsonReader &item : json.at("waits").list())
        value.waits.push_back(parseWait(item, 0, actions, plan_.inFlight));
    return value;
  }

  /// A list of actions. A turn of the list is a call or, in a loop, an iteration.
  struct List {
    int64_t turnsBack; ///< how many turns back waits may refer
    size_t depth = 0;  ///< number of loops around the list
    int64_t times = 1; ///< executions of the list per call
  };

  std::vector<Action> parseActions(const JsonReader &json, const List &list) const {
    std::vector<JsonReader> items = json.list();
    std::vector<Action> actions;
    for (size_t i = 0; i < items.size(); ++i)
      actions.push_back(parseAction(items[i], i, items.size(), list));
    return actions;
  }

  Action parseAction(const JsonReader &json, size_t number, size_t count, const List &list) const {
    Action action;
    for (const JsonReader &item : json.at("queues").list())
      action.queues.push_back(parseIndex(item, plan_.queues.size()));
    if (action.queues.empty())
      json.at("queues").fail("is empty");
    action.work = parseWork(json, action.queues, list);
    if (json.has("waits"))
      for (const JsonReader &item : json.at("waits").list())
        action.waits.push_back(parseWait(item, number, count, list.turnsBack));
    if (json.has("last_uses"))
      for (const JsonReader &item : json.at("last_uses").list())
        action.lastUses.push_back(parseLastUse(item, action.queues));
    return action;
  }

  ActionWork parseWork(const JsonReader &json, const std::vector<size_t> &queues, const List &list) const {
    static constexpr const char *kinds[] = {"launch", "copy", "exchange", "loop", "collective"};
    if (std::count_if(std::begin(kinds), std::end(kinds), [&](const char *kind) { return json.has(kind); }) != 1)
      json.fail("is not one of a launch, a copy, an exchange, a loop or a collective");
    if (json.has("exchange"))
      return parseExchange(json.at("exchange"), queues);
    if (json.has("loop"))
      return parseLoop(json.at("loop"), queues, list);
    if (queues.size() != 1)
      json.at("queues").fail(concat("are ", queues.size(), ", not 1"));
    if (json.has("collective"))
      return parseCollective(json.at("collective"), plan_, plan_.queues[queues.front()]);
    if (json.has("launch"))
      return parseLaunch(json.at("launch"), plan_.queues[queues.front()]);
    Copy copy = parseCopy(json.at("copy"), plan_.queues[queues.front()]);
    if (list.depth > 0 && copy.when != Copy::When::step)
      json.at("copy").at("when").fail("a copy in a loop happens in every iteration");
    return copy;
  }

  Exchange parseExchange(const JsonReader &json, const std::vector<size_t> &queues) const {
    std::vector<JsonReader> copies = json.at("copies").list();
    if (copies.size() != 2 || queues.size() != 2 || queues[0] == queues[1])
      json.fail(concat("has ", copies.size(), " copies in ", queues.size(), " queues, not 2 in 2"));
    Exchange exchange{{parseCopy(copies[0], plan_.queues[queues[0]]), parseCopy(copies[1], plan_.queues[queues[1]])}};
    const auto &[there, back] = exchange.copies;
    if (plan_.deviceOf(there.from) != plan_.deviceOf(back.to) ||
        plan_.deviceOf(there.to) != plan_.deviceOf(back.from) || plan_.deviceOf(there.from) == 0 ||
        plan_.deviceOf(there.to) == 0)
      json.at("copies").fail("are not one from an accelerator to another and one back");
    if (there.when != Copy::When::step || back.when != Copy::When::step)
      json.at("copies").fail("do not happen in every call");
    return exchange;
  }

  Loop parseLoop(const JsonReader &json, const std::vector<size_t> &queues, const List &list) const {
    if (list.depth == mostLoopDepth)
      json.fail(concat("is in ", list.depth, " loops; at most ", mostLoopDepth, " may be in each other"));
    Loop loop{json.at("name").string(),
              optionalText(json, "source"),
              json.at("count").integer(1, INT32_MAX / list.times),
              std::nullopt,
              {}};
    if (json.has("condition"))
      loop.condition = parseCondition(json.at("condition"));
    loop.actions = parseActions(json.at("actions"), {1, list.depth + 1, list.times * loop.count});
    std::set<size_t> stated(queues.begin(), queues.end()), wanted;
    for (const Action &action : loop.actions)
      wanted.insert(action.queues.begin(), action.queues.end());
    if (stated != wanted || stated.size() != queues.size())
      json.fail("has other queues than its actions");
    for (const ListedAction &inner : listActions(loop.actions))
      if (loop.condition && (inner.action->collective() || !inner.action->copies().empty()))
        json.fail("has a condition, and copies or collectives, of which a call has a known number");
    return loop;
  }

  Slot parseCondition(const JsonReader &json) const {
    Slot slot = parseSlot(json, plan_, 1);
    if (plan_.deviceOf(slot) != 0)
      json.at("arena").fail("is not on the host, which reads it");
    return slot;
  }

  /// Parses a wait of action number `number` in a list of `count` actions. A wait for the same turn may only refer to
  /// earlier actions, so that every wait ends.
  static Wait parseWait(const JsonReader &json, size_t number, size_t count, int64_t turnsBack) {
    std::vector<JsonReader> fields = json.list();
    if (fields.size() != 2)
      json.fail(concat("has ", fields.size(), " fields, not 2"));
    Wait wait{0, fields[1].integer(0, turnsBack)};
    if (wait.calls == 0 && number == 0)
      json.fail("waits for what comes later in the same call");
    wait.action = parseIndex(fields[0], wait.calls == 0 ? number : count);
    return wait;
  }

  Buffer parseLastUse(const JsonReader &json, const std::vector<size_t> &queues) const {
    Buffer buffer = parseBuffer(json, plan_);
    size_t device = plan_.deviceOf(buffer.slot);
    if (std::none_of(queues.begin(), queues.end(), [&](size_t queue) { return plan_.queues[queue].device == device; }))
      json.at("arena").fail(concat("is not on the device of the queue ", quote(plan_.queues[queues.front()].name)));
    if (plan_.arenas[buffer.slot.arena].isConstant())
      json.at("arena").fail("is among the constants, which have no last use");
    return buffer;
  }

  Launch parseLaunch(const JsonReader &json, const Queue &queue) const {
    Launch launch;
    launch.kernel = parseIndex(json.at("kernel"), plan_.kernels.size());
    launch.name = json.has("name") ? json.at("name").string() : plan_.kernels[launch.kernel].name;
    launch.source = optionalText(json, "source");
    size_t device = plan_.kernels[launch.kernel].device;
    if (queue.device != device || queue.kind != QueueKind::compute)
      json.at("kernel").fail(
          concat("runs on ", quote(plan_.devices[device].name), ", but its queue is ", quote(queue.name)));
    for (const JsonReader &item : json.at("buffers").list()) {
      Buffer &buffer = launch.buffers.emplace_back(parseBuffer(item, plan_));
      buffer.access = parseEnum<Access>(item.at("access"), accessNames);
      if (plan_.deviceOf(buffer.slot) != device)
        item.at("arena").fail(concat("is not on ", quote(plan_.devices[device].name), ", where the kernel runs"));
      if (buffer.isWritten() && plan_.arenas[buffer.slot.arena].isConstant())
        item.at("access").fail("a kernel cannot write constants");
    }
    return launch;
  }

  Copy parseCopy(const JsonReader &json, const Queue &queue) const {
    Copy copy;
    copy.value = json.at("value").string();
    copy.reason = json.at("reason").string();
    copy.source = optionalText(json, "source");
    copy.when = parseEnum<Copy::When>(json.at("when"), Copy::whenNames);
    copy.bytes = json.at("bytes").integer(0, mostBytes);
    copy.bytesPerRow = json.at("bytes_per_row").integer(0, mostBytes);
    copy.capacityBytes = json.at("capacity_bytes").integer(0, mostBytes);
    int64_t rowsBytes = 0;
    if (__builtin_mul_overflow(copy.bytesPerRow, plan_.capacity, &rowsBytes) || rowsBytes > copy.capacityBytes ||
        copy.bytes > copy.capacityBytes - rowsBytes)
      json.at("capacity_bytes").fail(concat("is ", copy.capacityBytes, ", less than what moves"));
    copy.from = parseSlot(json.at("from"), plan_, copy.capacityBytes);
    copy.to = parseSlot(json.at("to"), plan_, copy.capacityBytes);
    size_t from = plan_.deviceOf(copy.from), to = plan_.deviceOf(copy.to);
    if (from == to)
      json.fail(concat("stays on ", quote(plan_.devices[from].name)));
    if (queue.device == 0 || (queue.device != from && queue.device != to))
      json.fail(concat("its queue ", quote(queue.name), " belongs to neither end of it"));
    if (plan_.arenas[copy.to.arena].isConstant())
      json.at("to").fail("a copy cannot write constants");
    checkWhen(json, copy);
    return copy;
  }

  /// A stale copy fills a state's mirror, an on-demand copy an output.
  void checkWhen(const JsonReader &json, const Copy &copy) const {
    auto isOutput = [&](const Value &output) { return output.slot == copy.to; };
    if (copy.when == Copy::When::asked && std::none_of(entry_.outputs.begin(), entry_.outputs.end(), isOutput))
      json.at("to").fail("is no output of the entry point");
    auto isMirrored = [&](const State &state) {
      return state.slot == copy.from && state.bytes == copy.capacityBytes &&
             std::find(state.mirrors.begin(), state.mirrors.end(), copy.to) != state.mirrors.end();
    };
    if (copy.when == Copy::When::stale && std::none_of(plan_.states.begin(), plan_.states.end(), isMirrored))
      json.at("to").fail("is no mirror of the state that it is filled from");
  }

  const JsonReader &json_;
  const Plan &plan_;
  Entry entry_;
};

} // namespace

Entry parseEntry(const JsonReader &json, const Plan &plan) { return EntryReader(json, plan).parse(); }

} // namespace sluice::runtime
