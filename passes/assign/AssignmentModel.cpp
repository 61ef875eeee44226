#include "passes/assign/AssignmentModel.h"

#include "ir/Module.h"
#include "passes/schedule/Dependences.h"
#include "passes/schedule/IssueOrder.h"
#include "passes/schedule/MemoryWaits.h"
#include "passes/schedule/TransientMemory.h"
#include "runtime/plan/ScheduleModel.h"
#include "llvm/ADT/BitVector.h"

using llvm::SmallVector;

namespace sluice::passes {

AssignmentModel::AssignmentModel(const PlacementGraph &graph, const ir::Target &target, const CostModel &model,
                                 bool hostRunsHere)
    : graph(graph), inFlight(ir::getCallsInFlight(ir::EntryOp(graph.entry)->getParentOfType<mlir::ModuleOp>())),
      hostRunsHere(hostRunsHere) {
  costs.kernels.assign(graph.groups.size(), std::vector<AssignmentCosts::Kernel>(target.devices().size()));
  for (auto [group, on] : llvm::zip_equal(graph.groups, costs.kernels))
    for (size_t device = 0; device < group.seconds.size(); ++device)
      on[device].seconds = group.seconds[device].value_or(0);
  for (const ir::TargetDevice &from : target.devices()) {
    costs.alignments.push_back(from.alignment);
    std::vector<AssignmentCosts::Link> &row = costs.links.emplace_back();
    for (const ir::TargetDevice &to : target.devices()) {
      const LinkCosts &link = model.link(from.name, to.name);
      row.push_back({link.latency, link.bytesPerSecond});
    }
  }
}

void AssignmentModel::setKernel(uint32_t group, uint32_t device, double seconds, int64_t workspaceBytes) {
  int64_t workspace = workspaceBytes > 0 ? alignSlot(workspaceBytes, costs.alignments[device]) : 0;
  costs.kernels[group][device] = {seconds, workspace};
}

namespace {

/// A scheduled and planned call.
class PlannedCall {
public:
  PlannedCall(AssignedCall assigned, unsigned queueCount, int64_t inFlight, bool hostRunsHere)
      : call(std::move(assigned)), deviceCount(call.stateBytes.size()), queueCount(queueCount), inFlight(inFlight),
        hostRunsHere(hostRunsHere), numbers(call.actions.size()), known(queueCount),
        transientOf(call.buffers.size(), kNone), workspaces(call.actions.size(), kNone) {}

  AssignmentFigures run() {
    addDependences();
    issue();
    AssignmentFigures figures;
    figures.memory = placeInMemory();
    figures.seconds = predict();
    return figures;
  }

private:
  using Buffer = AssignedCall::Buffer;
  using Action = AssignedCall::Action;
  static constexpr unsigned kNone = AssignedCall::kNone;
  static constexpr int64_t kCalls = 24; // calls of a simulated run, of which the second half counts

  /// A buffer of a state holds two values in a call: 2b is the old value and 2b + 1 that of its writer.
  void addDependences() {
    llvm::BitVector isState(call.buffers.size());
    for (unsigned buffer : call.stateBuffers)
      isState.set(buffer);
    std::vector<unsigned> writerOf(call.buffers.size(), kNone);
    for (auto [i, action] : llvm::enumerate(call.actions))
      for (unsigned written : action.writes)
        writerOf[written] = i;
    std::vector<ActionUses> uses(call.actions.size());
    for (auto [i, action] : llvm::enumerate(call.actions)) {
      for (unsigned read : action.reads) {
        bool isOld = isState.test(read) && writerOf[read] != kNone && writerOf[read] >= i;
        uses[i].reads.push_back(2 * read + !isOld);
      }
      for (unsigned written : action.writes) {
        if (writerOf[written] != i)
          continue;
        uses[i].makes.push_back(2 * written + 1);
        if (isState.test(written))
          uses[i].replaces.push_back(2 * written);
      }
    }
    Dependences dependences = findDependences(uses);
    for (auto [action, before] : llvm::zip_equal(call.actions, dependences.before)) {
      QueuedAction &queued = queue.emplace_back();
      queued.queues = {action.queue};
      queued.seconds = action.seconds;
      queued.before = before;
    }
  }

  /// On the host alone work runs in program order and requires no events.
  void issue() {
    bool isHostAlone =
        call.asked.empty() && llvm::all_of(queue, [](const QueuedAction &a) { return a.queues.front() == 0; });
    if (isHostAlone)
      llvm::append_range(issued, llvm::seq<unsigned>(0, call.actions.size()));
    else
      issued = findIssueOrder(queue, queueCount);
    for (auto [number, action] : llvm::enumerate(issued)) {
      numbers[action] = number;
      SmallVector<unsigned> after;
      if (!isHostAlone)
        after = llvm::map_to_vector(queue[action].before, [&](unsigned other) { return numbers[other]; });
      known.issue(queue[action].queues, after);
      isAsynchronous |= queue[action].queues.front() != 0;
    }
  }

  //===- memory ---------------------------------------------------------------------------------------------------===//

  /// Returns the bytes of each device.
  std::vector<int64_t> placeInMemory() {
    for (auto [number, buffer] : llvm::enumerate(call.buffers))
      if (buffer.isWrittenByHost())
        addTransient(number);
    for (unsigned action : issued) {
      for (unsigned written : call.actions[action].writes)
        if (const Buffer &buffer = call.buffers[written]; !buffer.offset && buffer.maker == action)
          addTransient(written);
      if (call.actions[action].workspace > 0)
        addWorkspace(action);
    }
    for (auto [number, action] : llvm::zip_equal(numbers, call.actions))
      for (unsigned read : action.reads)
        if (unsigned transient = transientOf[read]; transient != kNone)
          transients[transient].uses.push_back(number);
    for (unsigned buffer : call.asked) {
      addTransient(buffer);
      transients.back().sharesBytes = false;
    }
    SmallVector<int64_t> peaks = placeTransients(transients, known, deviceCount);
    std::vector<int64_t> memory;
    for (auto [states, peak] : llvm::zip_equal(call.stateBytes, peaks))
      memory.push_back(states + peak);
    return memory;
  }

  void addTransient(unsigned number) {
    const Buffer &buffer = call.buffers[number];
    transientOf[number] = unsigned(transients.size());
    TransientBuffer &added = transients.emplace_back();
    bool isRepeated = isAsynchronous && inFlight > 1 && buffer.isInput;
    added.device = buffer.device;
    added.bytes = isRepeated ? inFlight * buffer.bytes : buffer.bytes;
    added.stride = isRepeated ? buffer.bytes : 0;
    added.sharesBytes = !isRepeated;
    added.outlivesCall = buffer.outlivesCall;
    if (buffer.maker == kNone)
      return;
    added.begin = numbers[buffer.maker];
    added.uses.push_back(added.begin);
  }

  void addWorkspace(unsigned action) {
    workspaces[action] = unsigned(transients.size());
    TransientBuffer &added = transients.emplace_back();
    added.device = call.buffers[call.actions[action].writes.front()].device;
    added.bytes = call.actions[action].workspace;
    added.begin = numbers[action];
    added.uses = {added.begin};
  }

  //===- time -----------------------------------------------------------------------------------------------------===//

  double predict() const {
    runtime::ScheduleModel::Call timed;
    for (unsigned number : issued) {
      const Action &action = call.actions[number];
      runtime::ScheduleModel::Work &work = timed.work.emplace_back();
      work.queues = {action.queue};
      work.seconds = action.recurs ? action.seconds : 0;
      if (action.link)
        work.links = {*action.link};
    }
    timed.inFlight = inFlight;
    for (unsigned q = 0; q < queueCount; ++q)
      timed.runsHere.push_back(q == 0 && hostRunsHere);
    if (queueCount > 1)
      addWaits(timed);
    return runtime::steadySeconds(runtime::ScheduleModel(std::move(timed)).predict(kCalls).ends);
  }

  void addWaits(runtime::ScheduleModel::Call &timed) const {
    MemoryWaits waits = findMemoryWaits(touched());
    auto toWaits = [](const MemoryWaits::List &ends) {
      std::vector<runtime::Wait> list;
      for (ActionEnd end : ends)
        list.push_back({end.action, end.calls});
      return list;
    };
    for (auto [work, ends] : llvm::zip_equal(timed.work, waits.actions))
      work.waits = toWaits(ends);
    for (const MemoryWaits::List &ends : waits.inputs)
      timed.inputWaits.push_back(toWaits(ends));
  }

  CallActions touched() const {
    CallActions result;
    result.queueCount = queueCount;
    result.inFlight = unsigned(inFlight);
    for (unsigned number : issued) {
      const Action &action = call.actions[number];
      TouchingAction &touching = result.actions.emplace_back();
      touching.queues = {action.queue};
      for (unsigned read : action.reads)
        touching.accesses.push_back(accessOf(read, /*isWrite=*/false));
      for (unsigned written : action.writes)
        touching.accesses.push_back(accessOf(written, /*isWrite=*/true));
      if (action.workspace > 0)
        touching.accesses.push_back(accessOf(transients[workspaces[number]], action.workspace, /*isWrite=*/true));
    }
    for (auto [number, buffer] : llvm::enumerate(call.buffers))
      if (buffer.isWrittenByHost())
        result.inputs.push_back(accessOf(transients[transientOf[number]], buffer.bytes, /*isWrite=*/true));
    return result;
  }

  static ArenaAccess accessOf(const TransientBuffer &buffer, int64_t bytes, bool isWrite) {
    return {unsigned(buffer.device), buffer.offset, buffer.stride, bytes, isWrite};
  }
  /// State arenas are numbered after the transient arenas.
  ArenaAccess accessOf(unsigned number, bool isWrite) const {
    const Buffer &buffer = call.buffers[number];
    if (buffer.offset)
      return {unsigned(deviceCount) + buffer.device, *buffer.offset, 0, buffer.bytes, isWrite};
    return accessOf(transients[transientOf[number]], buffer.bytes, isWrite);
  }

  AssignedCall call;
  size_t deviceCount;
  unsigned queueCount;
  int64_t inFlight;
  bool hostRunsHere;
  std::vector<QueuedAction> queue;
  SmallVector<unsigned> issued;  // actions in issue order
  std::vector<unsigned> numbers; // of actions in that order
  HappensBefore known;
  bool isAsynchronous = false;
  std::vector<TransientBuffer> transients;
  std::vector<unsigned> transientOf, workspaces; // numbers among these: by buffer, and by action
};

} // namespace

AssignmentFigures AssignmentModel::judge(const std::vector<uint32_t> &devices) const {
  return PlannedCall(callOf(graph, costs, devices), costs.queueCount(), inFlight, hostRunsHere).run();
}

} // namespace sluice::passes
