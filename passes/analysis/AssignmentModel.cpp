#include "passes/analysis/AssignmentModel.h"

#include "passes/schedule/IssueOrder.h"
#include "passes/schedule/MemoryWaits.h"
#include "passes/schedule/TransientMemory.h"
#include "runtime/plan/ScheduleModel.h"
#include <queue>

using llvm::ArrayRef;
using llvm::SmallVector;

namespace sluice::passes {

static constexpr uint32_t kHost = 0;
static constexpr unsigned kNone = ~0u;

AssignmentModel::AssignmentModel(const PlacementGraph &graph, const ir::Target &target, const CostModel &costs,
                                 bool hostRunsHere)
    : graph(graph), hostRunsHere(hostRunsHere),
      kernels(graph.groups.size(), std::vector<Kernel>(target.devices().size())) {
  for (auto [group, on] : llvm::zip_equal(graph.groups, kernels))
    for (size_t device = 0; device < group.seconds.size(); ++device)
      on[device].seconds = group.seconds[device].value_or(0);
  for (const ir::TargetDevice &from : target.devices()) {
    std::vector<Link> &row = links.emplace_back();
    for (const ir::TargetDevice &to : target.devices()) {
      const LinkCosts &link = costs.link(from.name, to.name);
      row.push_back({link.latency, link.bytesPerSecond});
    }
  }
}

void AssignmentModel::setKernel(uint32_t group, uint32_t device, double seconds, int64_t workspaceBytes) {
  kernels[group][device] = {seconds, workspaceBytes};
}

/// An assignment as the launches and copies of a call.
class AssignedCall {
public:
  AssignedCall(const AssignmentModel &model, const std::vector<uint32_t> &devices)
      : model(model), graph(model.graph), flow(graph.flow), devices(devices), deviceCount(model.deviceCount()),
        copyOf(flow.values.size() * deviceCount, kNone), bufferOf(flow.values.size() * deviceCount, kNone),
        stateBytes(deviceCount), placed(graph.groups.size()) {}

  AssignmentFigures run() {
    findCopies();
    orderByProgram();
    placeStates();
    addActions();
    findDependences();
    issue();
    AssignmentFigures figures;
    figures.memory = placeInMemory();
    figures.seconds = predict();
    return figures;
  }

private:
  using Value = PlacementFlow::Value;
  static constexpr int64_t kCalls = 24; // of a simulated run, whose second half counts

  struct Copy {
    uint32_t value, to;
    bool isAsked, isStale;
    std::pair<int, int> position; // in the program: behind its value, the last to be read first
  };

  /// Some bytes that actions touch: of a state's place or mirror, or transient.
  struct Buffer {
    uint32_t device;
    int64_t bytes;
    std::optional<int64_t> offset; // of a place in the arena of states
    unsigned maker = kNone;        // action
    unsigned transient = kNone;    // number among the transient buffers
    bool isInput = false, outlivesCall = false;
  };

  struct Action {
    unsigned queue = 0;
    double seconds = 0; // alone
    bool recurs = true; // in every call
    std::optional<std::pair<uint32_t, uint32_t>> link;
    SmallVector<unsigned, 4> reads, writes; // buffers
    int64_t workspace = 0;
  };

  static Action actionIn(unsigned queue, double seconds) {
    Action action;
    action.queue = queue;
    action.seconds = seconds;
    return action;
  }

  uint32_t homeOf(uint32_t value) const {
    uint32_t producer = flow.values[value].producer;
    return producer == Value::kInput ? kHost : devices[producer];
  }
  uint32_t homeOfState(uint32_t state) const { return devices[flow.states[state].group]; }
  bool isLaunched(const Value &value) const { return value.producer != Value::kInput && !value.state; }
  unsigned &copyTo(uint32_t value, uint32_t device) { return copyOf[value * deviceCount + device]; }
  unsigned &buffer(uint32_t value, uint32_t device) { return bufferOf[value * deviceCount + device]; }

  unsigned queueOf(uint32_t device) const { return device == kHost ? 0 : 3 * device - 2; }
  unsigned queueOf(const Copy &copy) const {
    uint32_t accelerator = copy.to != kHost ? copy.to : homeOf(copy.value);
    return queueOf(accelerator) + (copy.isStale ? 0 : copy.to != kHost ? 1 : 2);
  }

  /// One for each value and device other than its own on which something reads it.
  void findCopies() {
    for (uint32_t number = 0; number < flow.values.size(); ++number) {
      const Value &value = flow.values[number];
      uint32_t home = homeOf(number);
      SmallVector<int, 4> first(deviceCount, INT_MAX);
      bool hasReader = false; // on the host, beside the one who asks for outputs
      auto note = [&](uint32_t device, int position) {
        if (device != home)
          first[device] = std::min(first[device], position);
        hasReader |= device == kHost;
      };
      for (const PlacementFlow::Reader &reader : value.readers)
        note(devices[reader.group], reader.position);
      for (const PlacementFlow::Update &update : value.updates)
        note(homeOfState(update.state), update.position);
      bool isAsked = !hasReader && !value.outputs.empty();
      if (home != kHost && !value.outputs.empty() && first[kHost] == INT_MAX)
        first[kHost] = INT_MAX - 1;
      for (uint32_t to = 0; to < deviceCount; ++to)
        if (first[to] != INT_MAX) {
          copyTo(number, to) = copies.size();
          bool asked = to == kHost && isAsked;
          copies.push_back({number, to, asked, value.state && !asked, {value.position, -first[to]}});
        }
    }
  }

  /// Launches and copies in the order in which fused kernels stand: of those that can run, the first of the program.
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

  /// Readers of a state come before the launch that computes its new value, where they can.
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

  unsigned addBuffer(uint32_t device, int64_t bytes, bool isState = false) {
    Buffer &added = buffers.emplace_back();
    added.device = device;
    added.bytes = bytes;
    if (isState) {
      added.offset = stateBytes[device];
      stateBytes[device] += bytes;
    }
    return unsigned(buffers.size() - 1);
  }

  void placeStates() {
    for (uint32_t i = 0; i < flow.states.size(); ++i) {
      const PlacementFlow::State &state = flow.states[i];
      stateBuffers.push_back(addBuffer(homeOfState(i), state.bytes, /*isState=*/true));
      if (state.value)
        buffer(*state.value, homeOfState(i)) = stateBuffers.back();
    }
    for (const Copy &copy : copies)
      if (copy.isStale)
        buffer(copy.value, copy.to) = addBuffer(copy.to, flow.values[copy.value].bytes, /*isState=*/true);
    for (uint32_t input : flow.inputs) {
      buffer(input, kHost) = addBuffer(kHost, flow.values[input].bytes);
      buffers.back().isInput = true;
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
        if (uint32_t home = homeOfState(update.state); buffer(value, home) != stateBuffers[update.state])
          addCopyingLaunch(value, home, stateBuffers[update.state]);
  }

  /// The buffer of a value on the device where it is made.
  unsigned make(uint32_t number) {
    const Value &value = flow.values[number];
    uint32_t home = homeOf(number);
    // What is read back beside, or becomes two states, cannot be either's place.
    bool isAlone = value.updates.size() == 1 && (value.outputs.empty() || home != kHost);
    if (isAlone && value.updates[0].mayBeInPlace && homeOfState(value.updates[0].state) == home &&
        isReadBefore(value.updates[0].state, value.producer))
      return stateBuffers[value.updates[0].state];
    return addBuffer(home, value.bytes);
  }

  /// Whether all that read the old value of a state on its device, beside this launch, come before it.
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
    Action action = actionIn(queueOf(device), model.kernels[group][device].seconds);
    for (uint32_t input : launch.inputs)
      action.reads.push_back(buffer(input, device));
    for (uint32_t output : launch.outputs)
      action.writes.push_back(buffer(output, device) = make(output));
    action.workspace = model.kernels[group][device].workspace;
    placed[group] = true;
    add(std::move(action));
  }

  Action actionOf(const Copy &copy) {
    const Value &value = flow.values[copy.value];
    uint32_t from = homeOf(copy.value);
    Action action = actionIn(queueOf(copy), model.links[from][copy.to].secondsFor(value.moved));
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
      buffers[to].isInput = flow.values[copy.value].producer == Value::kInput;
    }
    action.writes = {to};
    add(std::move(action));
  }

  /// What the host may ask for has a buffer that nothing overwrites meanwhile.
  void askFor(const Copy &copy) {
    const Value &value = flow.values[copy.value];
    uint32_t home = homeOf(copy.value);
    for (size_t i = 0; i < value.outputs.size(); ++i) {
      unsigned source = buffer(copy.value, home);
      if (!isLaunched(value)) {
        source = addBuffer(home, value.bytes);
        addCopyingLaunch(copy.value, home, source);
      }
      buffers[source].outlivesCall = true;
      unsigned to = addBuffer(kHost, value.bytes);
      asked.push_back({source, to, queueOf(copy)});
    }
  }

  /// Outputs that are on the host in each call.
  void addOutputs(uint32_t number) {
    const Value &value = flow.values[number];
    unsigned copy = copyTo(number, kHost);
    if (value.outputs.empty() || (copy != kNone && copies[copy].isAsked))
      return;
    bool isOwn = homeOf(number) == kHost ? isLaunched(value) : !value.state;
    if (isOwn && value.outputs.size() == 1) {
      buffers[buffer(number, kHost)].outlivesCall = true;
      return;
    }
    for (size_t i = 0; i < value.outputs.size(); ++i) {
      unsigned output = addBuffer(kHost, value.bytes);
      buffers[output].outlivesCall = true;
      addCopyingLaunch(number, kHost, output);
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
      if (buffers[written].maker == kNone)
        buffers[written].maker = unsigned(actions.size());
    actions.push_back(std::move(action));
  }

  void findDependences() {
    std::vector<unsigned> writerOf(buffers.size(), kNone); // of states
    for (unsigned i = 0; i < actions.size(); ++i)
      for (unsigned written : actions[i].writes)
        writerOf[written] = i;
    auto isState = [&](unsigned buffer) { return llvm::is_contained(stateBuffers, buffer); };
    for (unsigned i = 0; i < actions.size(); ++i) {
      QueuedAction &queued = queue.emplace_back();
      queued.queue = actions[i].queue;
      queued.seconds = actions[i].seconds;
    }
    auto depend = [&](unsigned later, unsigned earlier) {
      if (later != earlier && !llvm::is_contained(queue[later].before, earlier))
        queue[later].before.push_back(earlier);
    };
    for (unsigned i = 0; i < actions.size(); ++i)
      for (unsigned read : actions[i].reads) {
        unsigned writer = writerOf[read];
        if (writer == kNone)
          continue;
        if (!isState(read) || writer < i)
          depend(i, writer); // a new value that is made in the state's place and read there
        else
          depend(writer, i); // of the old one
      }
  }

  void issue() {
    bool isHostAlone = asked.empty() && llvm::all_of(queue, [](const QueuedAction &a) { return a.queue == 0; });
    if (isHostAlone)
      for (unsigned i = 0; i < actions.size(); ++i)
        issued.push_back(i);
    else
      issued = findIssueOrder(queue, model.queueCount());
    numbers.resize(actions.size());
    for (auto [number, action] : llvm::enumerate(issued)) {
      numbers[action] = number;
      SmallVector<unsigned> after =
          llvm::map_to_vector(queue[action].before, [&](unsigned other) { return numbers[other]; });
      if (isHostAlone)
        after.clear();
      known.issue(queue[action].queue, after);
      isAsynchronous |= queue[action].queue != 0;
    }
  }

  /// Gives the bytes of each device.
  std::vector<int64_t> placeInMemory() {
    for (Buffer &buffer : buffers)
      if (buffer.isInput && buffer.maker == kNone)
        addTransient(buffer);
    for (unsigned action : issued) {
      for (unsigned written : actions[action].writes)
        if (Buffer &buffer = buffers[written]; !buffer.offset && buffer.maker == action)
          addTransient(buffer);
      if (actions[action].workspace > 0)
        addWorkspace(action);
    }
    for (unsigned action = 0; action < actions.size(); ++action)
      for (unsigned read : actions[action].reads)
        if (unsigned transient = buffers[read].transient; transient != kNone)
          transients[transient].uses.push_back(numbers[action]);
    for (const Asked &copy : asked) {
      addTransient(buffers[copy.to]);
      transients.back().sharesBytes = false;
    }
    SmallVector<int64_t> peaks = placeTransients(transients, known, deviceCount);
    std::vector<int64_t> memory;
    for (auto [states, peak] : llvm::zip_equal(stateBytes, peaks))
      memory.push_back(states + peak);
    return memory;
  }

  void addTransient(Buffer &buffer) {
    buffer.transient = unsigned(transients.size());
    TransientBuffer &added = transients.emplace_back();
    bool isTwice = isAsynchronous && buffer.isInput;
    added.device = buffer.device;
    added.bytes = isTwice ? 2 * buffer.bytes : buffer.bytes;
    added.stride = isTwice ? buffer.bytes : 0;
    added.sharesBytes = !isTwice;
    added.outlivesCall = buffer.outlivesCall;
    if (buffer.maker == kNone)
      return;
    added.begin = numbers[buffer.maker];
    added.uses.push_back(added.begin);
  }

  void addWorkspace(unsigned action) {
    workspaces.resize(actions.size(), kNone);
    workspaces[action] = unsigned(transients.size());
    TransientBuffer &added = transients.emplace_back();
    added.device = buffers[actions[action].writes.front()].device;
    added.bytes = alignPlace(actions[action].workspace);
    added.begin = numbers[action];
    added.uses = {added.begin};
  }

  ArenaAccess accessOf(const TransientBuffer &buffer, int64_t bytes, bool isWrite) const {
    return {unsigned(buffer.device), buffer.offset, buffer.stride, bytes, isWrite};
  }
  ArenaAccess accessOf(unsigned number, bool isWrite) const {
    const Buffer &buffer = buffers[number];
    if (buffer.offset)
      return {deviceCount + buffer.device, *buffer.offset, 0, buffer.bytes, isWrite};
    return accessOf(transients[buffer.transient], buffer.bytes, isWrite);
  }

  double predict() const {
    runtime::ScheduleModel::Call call;
    for (unsigned action : issued)
      call.work.push_back({actions[action].queue,
                           actions[action].recurs ? actions[action].seconds : 0,
                           {},
                           actions[action].link,
                           false});
    for (unsigned q = 0; q < model.queueCount(); ++q)
      call.runsHere.push_back(q == 0 && model.hostRunsHere);
    if (model.queueCount() > 1)
      addWaits(call);
    return runtime::steadySeconds(runtime::ScheduleModel(std::move(call)).predict(kCalls).ends);
  }

  void addWaits(runtime::ScheduleModel::Call &call) const {
    MemoryWaits waits = findMemoryWaits(touched());
    auto toWaits = [](const MemoryWaits::List &ends) {
      std::vector<runtime::Wait> list;
      for (ActionEnd end : ends)
        list.push_back({end.action, end.calls});
      return list;
    };
    for (auto [work, ends] : llvm::zip_equal(call.work, waits.actions))
      work.waits = toWaits(ends);
    for (const MemoryWaits::List &ends : waits.inputs)
      call.inputWaits.push_back(toWaits(ends));
  }

  CallActions touched() const {
    CallActions call;
    call.queueCount = model.queueCount();
    for (unsigned action : issued) {
      TouchingAction &touching = call.actions.emplace_back();
      touching.queue = actions[action].queue;
      for (unsigned read : actions[action].reads)
        touching.accesses.push_back(accessOf(read, false));
      for (unsigned written : actions[action].writes)
        touching.accesses.push_back(accessOf(written, true));
      if (actions[action].workspace > 0)
        touching.accesses.push_back(
            accessOf(transients[workspaces[action]], actions[action].workspace, /*isWrite=*/true));
    }
    for (const Buffer &buffer : buffers)
      if (buffer.isInput && buffer.maker == kNone)
        call.inputs.push_back(accessOf(transients[buffer.transient], buffer.bytes, /*isWrite=*/true));
    return call;
  }

  struct Asked {
    unsigned from, to; // buffers
    unsigned queue;
  };

  const AssignmentModel &model;
  const PlacementGraph &graph;
  const PlacementFlow &flow;
  const std::vector<uint32_t> &devices;
  uint32_t deviceCount;
  std::vector<Copy> copies;
  std::vector<unsigned> copyOf, bufferOf; // by value and device
  std::vector<int64_t> stateBytes;        // by device
  SmallVector<unsigned> order;            // groups, and behind them copies
  std::vector<unsigned> stateBuffers;     // by state
  std::vector<Buffer> buffers;
  std::vector<Action> actions;
  std::vector<Asked> asked;
  std::vector<bool> placed; // launches
  std::vector<QueuedAction> queue;
  SmallVector<unsigned> issued, numbers; // actions in the order of issue, and back
  HappensBefore known{model.queueCount()};
  bool isAsynchronous = false;
  std::vector<TransientBuffer> transients;
  std::vector<unsigned> workspaces; // by action
};

AssignmentFigures AssignmentModel::judge(const std::vector<uint32_t> &devices) const {
  return AssignedCall(*this, devices).run();
}

} // namespace sluice::passes
