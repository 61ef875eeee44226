// Parses and checks one entry point of a plan: its inputs, outputs and actions.
#include "runtime/base/Text.h"
#include "runtime/plan/ReadFields.h"

#include <algorithm>

namespace sluice::runtime {

namespace {

class EntryReader {
public:
  EntryReader(const JsonReader &json, const Plan &plan) : json_(json), plan_(plan) {}

  Entry parse() {
    entry_.name = json_.at("name").string();
    std::vector<JsonReader> actions = json_.at("actions").list();
    for (const JsonReader &item : json_.at("inputs").list())
      entry_.inputs.push_back(parseInput(item, actions.size()));
    for (const JsonReader &item : json_.at("outputs").list())
      entry_.outputs.push_back(parseValue(item));
    for (size_t i = 0; i < actions.size(); ++i)
      entry_.actions.push_back(parseAction(actions[i], i, actions.size()));
    for (const JsonReader &item : json_.at("peak_bytes").list())
      entry_.peakBytes.push_back(item.integer(0, mostBytes));
    if (entry_.peakBytes.size() != plan_.devices.size())
      json_.at("peak_bytes")
          .fail(concat("has ", entry_.peakBytes.size(), " numbers for ", plan_.devices.size(), " devices"));
    checkUniqueNames(json_.at("inputs"), entry_.inputs);
    checkUniqueNames(json_.at("outputs"), entry_.outputs);
    return std::move(entry_);
  }

private:
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
    value.bytes = parseTensorBytes(json, value.shape, value.dtype);
    value.slot = parseSlot(json, plan_, value.bytes);
    value.entry = plan_.entries.size();
    if (plan_.deviceOf(value.slot) != 0)
      json.at("arena").fail("is not on the host, where inputs and outputs lie");
    return value;
  }

  Value parseInput(const JsonReader &json, size_t actions) const {
    Value value = parseValue(json);
    if (plan_.arenas[value.slot.arena].isConstant())
      json.at("arena").fail("an input cannot lie among the constants");
    if (json.has("below"))
      value.below = json.at("below").integer(1, mostBytes);
    if (value.below > 0 && isFloat(value.dtype))
      json.at("below").fail(concat("counts classes, but the input is ", nameOf(value.dtype)));
    if (json.has("waits"))
      for (const JsonReader &item : json.at("waits").list())
        value.waits.push_back(parseWait(item, 0, actions));
    return value;
  }

  Action parseAction(const JsonReader &json, size_t number, size_t count) const {
    Action action;
    action.queue = parseIndex(json.at("queue"), plan_.queues.size());
    if (json.has("launch") == json.has("copy"))
      json.fail("is neither a launch nor a copy, or both");
    if (json.has("launch"))
      action.work = parseLaunch(json.at("launch"), plan_.queues[action.queue]);
    else
      action.work = parseCopy(json.at("copy"), plan_.queues[action.queue]);
    if (json.has("waits"))
      for (const JsonReader &item : json.at("waits").list())
        action.waits.push_back(parseWait(item, number, count));
    if (json.has("ends"))
      for (const JsonReader &item : json.at("ends").list())
        action.ends.push_back(parseEnd(item, plan_.queues[action.queue]));
    return action;
  }

  /// Action `number` of `count` waits; in the same call only for what comes earlier, so that every wait comes to an
  /// end.
  Wait parseWait(const JsonReader &json, size_t number, size_t count) const {
    std::vector<JsonReader> fields = json.list();
    if (fields.size() != 2)
      json.fail(concat("has ", fields.size(), " fields, not 2"));
    Wait wait{0, fields[1].integer(0, plan_.inFlight)};
    if (wait.calls == 0 && number == 0)
      json.fail("waits for what comes later in the same call");
    wait.action = parseIndex(fields[0], wait.calls == 0 ? number : count);
    return wait;
  }

  Buffer parseBuffer(const JsonReader &json) const {
    Buffer buffer;
    buffer.bytes = json.at("bytes").integer(0, mostBytes);
    buffer.slot = parseSlot(json, plan_, buffer.bytes);
    return buffer;
  }

  Buffer parseEnd(const JsonReader &json, const Queue &queue) const {
    Buffer buffer = parseBuffer(json);
    if (plan_.deviceOf(buffer.slot) != queue.device)
      json.at("arena").fail(concat("is not on the device of the queue ", quote(queue.name)));
    if (plan_.arenas[buffer.slot.arena].isConstant())
      json.at("arena").fail("constants do not end");
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
      Buffer &buffer = launch.buffers.emplace_back(parseBuffer(item));
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

  /// A stale copy fills a state's mirror, an asked one an output.
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
