#include "passes/assign/AssignedCall.h"

#include "passes/schedule/TransientMemory.h"

#include <queue>

using llvm::SmallVector;

namespace sluice::passes {

namespace {

class CallAssembly {
public:
  CallAssembly(const PlacementGraph &graph, const AssignmentCosts &costs, const std::vector<uint32_t> &devices)
      : graph(graph), flow(graph.flow), costs(costs), devices(devices), deviceCount(costs.deviceCount()),
        copyOf(flow.values.size() * deviceCount, kNone), bufferOf(flow.values.size() * deviceCount, kNone),
        placed(graph.groups.size()) {
    call.stateBytes.resize(deviceCount);
  }

  AssignedCall run() {
    findCopies();
    orderByProgram();
    placeStates();
    addActions();
    return std::move(call);
  }

private:
  using Value = PlacementFlow::Value;
  using Action = AssignedCall::Action;
  static constexpr unsigned kNone = AssignedCall::kNone;

  struct Copy {
    uint32_t value, to;
    bool isAsked, isStale;
    std::pair<int, int> position; // in the program, of the producer; then minus that of the first reader
  };

  static Action actionIn(unsigned queue, double seconds) {
    Action action;
    action.queue = queue;
    action.seconds = seconds;
    return action;
  }

  uint32_t homeOf(uint32_t value) const {
    uint32_t producer = flow.values[value].producer;
    return producer == Value::kInput ? kHostNumber : devices[producer];
  }
  uint32_t homeOfState(uint32_t state) const { return devices[flow.states[state].group]; }
  bool isLaunched(const Value &value) const { return value.producer != Value::kInput && !value.state; }
  unsigned &copyTo(uint32_t value, uint32_t device) { return copyOf[value * deviceCount + device]; }
  unsigned &buffer(uint32_t value, uint32_t device) { return bufferOf[value * deviceCount + device]; }

  unsigned queueOf(uint32_t device) const { return device == kHostNumber ? 0 : 3 * device - 2; }
  unsigned queueOf(const Copy &copy) const {
    uint32_t accelerator = copy.to != kHostNumber ? copy.to : homeOf(copy.value);
    return queueOf(accelerator) + (copy.isStale ? 0 : copy.to != kHostNumber ? 1 : 2);
  }

  /// One per value and remote device that reads it. Copies of one value are in the order in which DeduplicateCopies
  /// leaves them: the copy whose first reader is latest comes first.
  void findCopies() {
    for (uint32_t number = 0; number < flow.values.size(); ++number) {
      const Value &value = flow.values[number];
      uint32_t home = homeOf(number);
      SmallVector<int, 4> first(deviceCount, INT_MAX);
      bool hasReader = false; // on the host: a launch or a state, not the caller that fetches outputs
      auto note = [&](uint32_t device, int position) {
        if (device != home)
          first[device] = std::min(first[device], position);
        hasReader |= device == kHostNumber;
      };
      for (const PlacementFlow::Reader &reader : value.readers)
        note(devices[reader.group], reader.position);
      for (const PlacementFlow::Update &update : value.updates)
        note(homeOfState(update.state), update.position);
      bool isAsked = !hasReader && !value.outputs.empty();
      if (home != kHostNumber && !value.outputs.empty() && first[kHostNumber] == INT_MAX)
        first[kHostNumber] = INT_MAX - 1;
      for (uint32_t to = 0; to < deviceCount; ++to)
        if (first[to] != INT_MAX) {
          copyTo(number, to) = copies.size();
          bool asked = to == kHostNumber && isAsked;
          copies.push_back({number, to, asked, value.state && !asked, {value.position, -first[to]}});
        }
    }
  }

  /// Launches and copies in the order of fused kernels: among those that are ready, the first of the program.
  void orderByProgram() {
    using Ready = std::pair<std::pair<int, int>, unsigned>;
    unsigned groupCount = graph.groups.size();
    std::vector<SmallVector<unsigned, 4>> next(groupCount + copies.size());
    std::vector<unsigned> open(next.size());
    std::priority_queue<Ready, std::vector<Ready>, std::greater<>> ready;
    auto depend = [&](unsigned later, unsigned earlier) {
      next[earlier].push_back(later);
      ++open[later];
    };
    for (uint32_t group = 0; group < groupCount; ++group)
      for (uint32_t input : flow.launches[group].inputs) {
        unsigned copy = copyTo(input, devices[group]);
        if (copy != kNone && homeOf(input) != devices[group])
          depend(group, groupCount + copy);
        else if (isLaunched(flow.values[input]))
          depend(group, flow.values[input].producer);
      }
    for (unsigned i = 0; i < copies.size(); ++i)
      if (const Value &value = flow.values[copies[i].value]; isLaunched(value))
        depend(groupCount + i, value.producer);
    dependUpdates(depend);
    auto offer = [&](unsigned node) {
      if (node >= groupCount)
        ready.push({copies[node - groupCount].position, node});
      else if (graph.groups[node].kind == PlacedGroup::Launch)
        ready.push({{flow.launches[node].position, INT_MIN}, node});
    };
    for (unsigned node = 0; node < next.size(); ++node)
      if (open[node] == 0)
        offer(node);
    while (!ready.empty()) {
      unsigned node = ready.top().second;
      ready.pop();
      order.push_back(node);
      for (unsigned later : next[node])
        if (--open[later] == 0)
          offer(later);
    }
  }

  /// Orders the readers of a state before the launch that computes its new value, where possible.
  template <typename Depend> void dependUpdates(Depend depend) {
    for (const Value &value : flow.values)
      for (const PlacementFlow::Update &update : value.updates) {
        const std::optional<uint32_t> &old = flow.states[update.state].value;
        if (!old || !isLaunched(value) || devices[value.producer] != homeOfState(update.state))
          continue;
        for (const PlacementFlow::Reader &reader : flow.values[*old].readers)
          if (reader.group < value.producer && devices[reader.group] == homeOfState(update.state))
            depend(value.producer, reader.group);
        for (uint32_t to = 0; to < deviceCount; ++to)
          if (unsigned copy = copyTo(*old, to); copy != kNone)
            depend(value.producer, unsigned(graph.groups.size()) + copy);
      }
  }

  unsigned addBuffer(uint32_t device, int64_t unaligned, bool isState = false) {
    int64_t bytes = alignSlot(unaligned, costs.alignments[device]);
    AssignedCall::Buffer &added = call.buffers.emplace_back();
    added.device = device;
    added.bytes = bytes;
    if (isState) {
      added.offset = call.stateBytes[device];
      call.stateBytes[device] += bytes;
    }
    return unsigned(call.buffers.size() - 1);
  }

  void placeStates() {
    for (uint32_t i = 0; i < flow.states.size(); ++i) {
      const PlacementFlow::State &state = flow.states[i];
      call.stateBuffers.push_back(addBuffer(homeOfState(i), state.bytes, /*isState=*/true));
      if (state.value)
        buffer(*state.value, homeOfState(i)) = call.stateBuffers.back();
    }
    for (const Copy &copy : copies)
      if (copy.isStale)
        buffer(copy.value, copy.to) = addBuffer(copy.to, flow.values[copy.value].bytes, /*isState=*/true);
    for (uint32_t input : flow.inputs) {
      buffer(input, kHostNumber) = addBuffer(kHostNumber, flow.values[input].bytes);
      call.buffers.back().isInput = true;
    }
  }

  void addActions() {
    for (unsigned node : order)
      if (node < graph.groups.size())
        addLaunch(node);
      else if (const Copy &copy = copies[node - graph.groups.size()]; !copy.isAsked)
        addCopy(copy);
    for (const Copy &copy : copies)
      if (copy.isAsked)
        askFor(copy);
    for (uint32_t value = 0; value < flow.values.size(); ++value)
      addOutputs(value);
    for (uint32_t value = 0; value < flow.values.size(); ++value)
      for (const PlacementFlow::Update &update : flow.values[value].updates)
        if (uint32_t home = homeOfState(update.state); buffer(value, home) != call.stateBuffers[update.state])
          addCopyingLaunch(value, home, call.stateBuffers[update.state]);
  }

  /// The buffer of a value on its producer's device.
  unsigned make(uint32_t number) {
    const Value &value = flow.values[number];
    uint32_t home = homeOf(number);
    // A value that is also fetched, or updates two states, cannot use the buffer of either.
    bool isAlone = value.updates.size() == 1 && (value.outputs.empty() || home != kHostNumber);
    if (isAlone && value.updates[0].mayBeInPlace && homeOfState(value.updates[0].state) == home &&
        isReadBefore(value.updates[0].state, value.producer))
      return call.stateBuffers[value.updates[0].state];
    return addBuffer(home, value.bytes);
  }

  /// Whether all other readers of the state's old value on its device run before this launch.
  bool isReadBefore(uint32_t state, uint32_t launch) const {
    const std::optional<uint32_t> &old = flow.states[state].value;
    return !old || (flow.values[*old].outputs.empty() &&
                    llvm::all_of(flow.values[*old].readers, [&](const PlacementFlow::Reader &reader) {
                      return reader.group == launch || devices[reader.group] != devices[launch] || placed[reader.group];
                    }));
  }

  void addLaunch(unsigned group) {
    const PlacementFlow::Launch &launch = flow.launches[group];
    uint32_t device = devices[group];
    Action action = actionIn(queueOf(device), costs.kernels[group][device].seconds);
    for (uint32_t input : launch.inputs)
      action.reads.push_back(buffer(input, device));
    for (uint32_t output : launch.outputs)
      action.writes.push_back(buffer(output, device) = make(output));
    action.workspace = costs.kernels[group][device].workspace;
    placed[group] = true;
    add(std::move(action));
  }

  Action actionOf(const Copy &copy) {
    const Value &value = flow.values[copy.value];
    uint32_t from = homeOf(copy.value);
    Action action = actionIn(queueOf(copy), costs.links[from][copy.to].secondsFor(value.moved));
    action.recurs = !copy.isStale || flow.states[*value.state].isWritten;
    action.link = {from, copy.to};
    action.reads = {buffer(copy.value, from)};
    return action;
  }

  void addCopy(const Copy &copy) {
    Action action = actionOf(copy);
    unsigned &to = buffer(copy.value, copy.to);
    if (to == kNone) {
      to = addBuffer(copy.to, flow.values[copy.value].bytes);
      call.buffers[to].isInput = flow.values[copy.value].producer == Value::kInput;
    }
    action.writes = {to};
    add(std::move(action));
  }

  /// A value that the host may fetch has a buffer that no action overwrites until then.
  void askFor(const Copy &copy) {
    const Value &value = flow.values[copy.value];
    uint32_t home = homeOf(copy.value);
    for (size_t i = 0; i < value.outputs.size(); ++i) {
      unsigned source = buffer(copy.value, home);
      if (!isLaunched(value)) {
        source = addBuffer(home, value.bytes);
        addCopyingLaunch(copy.value, home, source);
      }
      call.buffers[source].outlivesCall = true;
      unsigned to = addBuffer(kHostNumber, value.bytes);
      call.asked.push_back(to);
    }
  }

  /// Outputs that reach the host in each call.
  void addOutputs(uint32_t number) {
    const Value &value = flow.values[number];
    unsigned copy = copyTo(number, kHostNumber);
    if (value.outputs.empty() || (copy != kNone && copies[copy].isAsked))
      return;
    bool isOwn = homeOf(number) == kHostNumber ? isLaunched(value) : !value.state;
    if (isOwn && value.outputs.size() == 1) {
      call.buffers[buffer(number, kHostNumber)].outlivesCall = true;
      return;
    }
    for (size_t i = 0; i < value.outputs.size(); ++i) {
      unsigned output = addBuffer(kHostNumber, value.bytes);
      call.buffers[output].outlivesCall = true;
      addCopyingLaunch(number, kHostNumber, output);
    }
  }

  void addCopyingLaunch(uint32_t value, uint32_t device, unsigned to) {
    Action action = actionIn(queueOf(device), flow.values[value].copySeconds[device]);
    action.reads = {buffer(value, device)};
    action.writes = {to};
    add(std::move(action));
  }

  void add(Action action) {
    for (unsigned written : action.writes)
      if (call.buffers[written].maker == kNone)
        call.buffers[written].maker = unsigned(call.actions.size());
    call.actions.push_back(std::move(action));
  }

  const PlacementGraph &graph;
  const PlacementFlow &flow;
  const AssignmentCosts &costs;
  const std::vector<uint32_t> &devices;
  uint32_t deviceCount;
  std::vector<Copy> copies;
  std::vector<unsigned> copyOf, bufferOf; // by value and device
  SmallVector<unsigned> order;            // groups, then copies
  std::vector<bool> placed;               // launches
  AssignedCall call;
};

} // namespace

AssignedCall callOf(const PlacementGraph &graph, const AssignmentCosts &costs, const std::vector<uint32_t> &devices) {
  return CallAssembly(graph, costs, devices).run();
}

} // namespace sluice::passes
