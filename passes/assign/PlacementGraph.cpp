// Builds the placement problem of an entry point, and applies its solution to a module.
//
// 1. Fusion groups are formed as for one device. Ops that the user placed on different devices never share a group. An
//    op that the user placed shares no group with an op that the user did not place.
// 2. Inputs form one group on the host; each state with its slots is a group; each launch is a group.
// 3. The readers of a value are launches, directly or through ops that they rematerialize, and the state that it
//    updates.
#include "passes/assign/PlacementGraph.h"

#include "ir/Layout.h"
#include "passes/assign/ChosenDevices.h"
#include "passes/assign/FixedDevices.h"
#include "passes/backend/KernelView.h"
#include "passes/schedule/Actions.h"
#include "runtime/plan/DeviceName.h"
#include "llvm/ADT/MapVector.h"

#include <cmath>
#include <numeric>

using namespace mlir;
using namespace sluice::ir;

namespace sluice::passes {

static constexpr double kPicosecondsPerSecond = 1e12;

static int64_t picoseconds(double seconds) { return std::llround(seconds * kPicosecondsPerSecond); }

namespace {

class GraphBuilding {
public:
  GraphBuilding(EntryOp entry, const DeviceBackends &backends, const CostModel &costs, bool fuse)
      : entry(entry), module(entry->getParentOfType<ModuleOp>()), symbols(module), backends(backends),
        target(backends.target()), costs(costs), fixed(entry, &backends), capacity(getCapacity(module)),
        rules(fuse, [this](ArrayRef<Operation *> ops, ValueRange results) { return mayShare(ops, results); }) {}

  PlacementGraph build() {
    graph.entry = entry;
    addLinks();
    addInputs();
    for (auto slot : module.getOps<StateOp>())
      if (slot.getOf())
        slotBytes[slot.getOfAttr().getAttr()] += getBufferBytes(slot.getTensorType(), capacity);
    for (auto get : entry.getActions().getOps<GetOp>())
      stateGroup(get.getStateAttr());
    for (auto set : entry.getActions().getOps<SetOp>())
      stateGroup(set.getStateAttr());
    SmallVector<FusionGroup> launches = formFusionGroups(entry, rules);
    auto isMadeAnywhere = [&](Operation *op) { return fixed.isMadeAnywhere(op); };
    for (FusionGroup &group : launches)
      if (!llvm::all_of(group.ops, isMadeAnywhere)) // else it is placed with its readers
        addLaunch(std::move(group));
    addValues();
    graph.flow = buildPlacementFlow(flowSource());
    return std::move(graph);
  }

private:
  size_t deviceCount() const { return target.devices().size(); }

  FlowSource flowSource() const {
    FlowSource source{entry, {}, states, &backends, &costs, capacity};
    for (const PlacedGroup &group : graph.groups)
      source.launches.push_back(group.kind == PlacedGroup::Launch ? &group.fusion : nullptr);
    return source;
  }
  uint32_t indexOf(StringRef device) const { return uint32_t(deviceIndex(target, device)); }

  /// Whether every backend accepts these ops in one launch and the user's placement allows it.
  bool mayShare(ArrayRef<Operation *> ops, ValueRange results) {
    std::optional<StringAttr> device; // null: none chosen by the user; constants join either
    for (Operation *op : ops) {
      if (isa<CopyOp>(op) || (device && !fixed.isMadeAnywhere(op) && fixed.of(op) != *device))
        return false;
      if (!fixed.isMadeAnywhere(op))
        device = fixed.of(op);
    }
    KernelView kernel(ops, results, views);
    if (device && *device && target.find(*device))
      return backends.of(device->getValue()).canFuse(kernel);
    return llvm::all_of(backends.sessions(), [&](const auto &backend) { return backend->canFuse(kernel); });
  }

  void addLinks() {
    for (const TargetDevice &from : target.devices()) {
      auto &row = graph.problem.links.emplace_back();
      for (const TargetDevice &to : target.devices()) {
        const LinkCosts &link = costs.link(from.name, to.name);
        row.push_back({picoseconds(link.latency), kPicosecondsPerSecond / link.bytesPerSecond});
      }
    }
    graph.problem.memoryCaps.resize(deviceCount());
  }

  /// A group without work.
  uint32_t addGroup(PlacedGroup::Kind kind, std::string name, int64_t memory, std::optional<uint32_t> pinned) {
    PlacedGroup &group = graph.groups.emplace_back();
    group.kind = kind;
    group.name = std::move(name);
    group.isFixed = pinned.has_value();
    graph.problem.groups.push_back(
        {std::vector<int64_t>(deviceCount(), 0), std::vector<int64_t>(deviceCount(), memory), pinned});
    return uint32_t(graph.groups.size() - 1);
  }

  void addInputs() {
    uint32_t group = addGroup(PlacedGroup::Inputs, "inputs", 0, 0);
    for (BlockArgument argument : entry.getBody().getArguments())
      producers[argument] = group;
  }

  /// The device of a state if the compiler has no choice in this entry point.
  std::optional<uint32_t> homeOf(StateOp state) const {
    if (StringAttr device = getDevice(state.getStoredType()))
      return indexOf(device);
    return state.isSetByHost() ? std::optional<uint32_t>(0) : std::nullopt;
  }

  /// The group of a state, or of the parameter whose slot it is.
  uint32_t stateGroup(FlatSymbolRefAttr name) {
    auto state = symbols.lookup<StateOp>(name.getAttr());
    if (state.getOf())
      return states[state] = stateGroup(state.getOfAttr());
    auto known = states.find(state);
    if (known != states.end())
      return known->second;
    int64_t bytes = getBufferBytes(state.getTensorType(), capacity) + slotBytes.lookup(state.getSymNameAttr());
    uint32_t group = addGroup(PlacedGroup::State, state.getSymName().str(), bytes, homeOf(state));
    graph.groups[group].state = state;
    return states[state] = group;
  }

  void addLaunch(FusionGroup fusion) {
    bool isCopy = isa<CopyOp>(fusion.ops.front());
    std::string name = nameOf(fusion);
    unsigned number = names[name]++;
    std::optional<uint32_t> pinned;
    for (Operation *op : fusion.ops)
      if (StringAttr device = fixed.of(op); device && target.find(device))
        pinned = indexOf(device);
    uint32_t index = addGroup(isCopy ? PlacedGroup::Copy : PlacedGroup::Launch,
                              number ? name + "_" + std::to_string(number) : name, 0, pinned);
    LaunchContents contents = contentsOf(fusion);
    for (Operation *op : fusion.ops)
      for (Value result : op->getResults())
        producers[result] = index;
    for (Value input : contents.inputs)
      readers[input].push_back(index);
    graph.groups[index].fusion = std::move(fusion);
    if (!isCopy)
      addCosts(index, contents);
    for (uint32_t device = 0; device < deviceCount(); ++device)
      for (Value output : graph.groups[index].fusion.results)
        graph.problem.groups[index].memory[device] += bytesOf(output);
  }

  /// An op that can be computed anywhere runs on the host if its reader's device cannot run it.
  std::string reasonAgainst(Operation *op, StringRef device) const {
    return fixed.isMadeAnywhere(op) ? "" : backends.reasonAgainst(op, device);
  }

  /// Times on every device. The work is the same on all; the kind is named by each backend.
  void addCosts(uint32_t index, const LaunchContents &contents) {
    PlacedGroup &group = graph.groups[index];
    group.seconds.resize(deviceCount());
    ArrayRef<Operation *> ops = contents.ops.getArrayRef();
    for (auto [i, device] : llvm::enumerate(target.devices())) {
      Backend &backend = backends.of(device.name);
      int64_t &time = graph.problem.groups[index].times[i];
      for (Operation *op : ops)
        if (std::string reason = reasonAgainst(op, device.name); !reason.empty()) {
          group.unsupported +=
              (group.unsupported.empty() ? "" : "; ") + runtime::shownDevice(device.name) + ": " + reason;
          time = PlacementProblem::kImpossible;
          break;
        }
      if (time == PlacementProblem::kImpossible)
        continue;
      group.cost = backend.cost(ops, contents.inputs.getArrayRef(), group.fusion.results);
      const Work &work = group.cost.work;
      group.seconds[i] =
          costs.kernelSeconds(device.name, group.cost.kind, double(work.flops + work.flopsPerRow * capacity),
                              double(work.bytes + work.bytesPerRow * capacity));
      time = picoseconds(*group.seconds[i]);
    }
  }

  int64_t bytesOf(Value value) const { return getBufferBytes(cast<RankedTensorType>(value.getType()), capacity); }

  void addValue(uint32_t producer, Value value, std::vector<uint32_t> consumers, bool isFree, int64_t copyMemory) {
    if (!consumers.empty())
      graph.problem.values.push_back({producer, std::move(consumers), bytesOf(value), copyMemory, isFree});
  }

  void addValues() {
    Block &block = entry.getActions();
    llvm::DenseSet<StringAttr> written;
    for (auto set : block.getOps<SetOp>()) {
      written.insert(set.getStateAttr().getAttr());
      readers[set.getValue()].push_back(stateGroup(set.getStateAttr()));
    }
    for (auto get : block.getOps<GetOp>())
      if (auto reading = readers.find(get.getValue()); reading != readers.end())
        addValue(stateGroup(get.getStateAttr()), get.getValue(), reading->second,
                 /*isFree=*/!written.contains(get.getStateAttr().getAttr()), bytesOf(get.getValue()));
    for (auto &[value, producer] : producers)
      if (auto reading = readers.find(value); reading != readers.end())
        addValue(producer, value, reading->second, /*isFree=*/false, bytesOf(value));
  }

  EntryOp entry;
  ModuleOp module;
  SymbolTable symbols;
  const DeviceBackends &backends;
  const Target &target;
  const CostModel &costs;
  FixedDevices fixed;
  int64_t capacity;
  OpViews views;
  FusionRules rules;
  PlacementGraph graph;
  llvm::MapVector<Value, uint32_t> producers; // of inputs and results of launches
  DenseMap<Value, std::vector<uint32_t>> readers;
  DenseMap<Operation *, uint32_t> states;
  DenseMap<StringAttr, int64_t> slotBytes; // by parameter
  llvm::StringMap<unsigned> names;
};

} // namespace

PlacementGraph buildPlacementGraph(EntryOp entry, const DeviceBackends &backends, const CostModel &costs, bool fuse) {
  return GraphBuilding(entry, backends, costs, fuse).build();
}

/// The lifetime of a transient value: from its group to that of its last reader.
static std::pair<uint32_t, uint32_t> lifeOf(const PlacementProblem::Value &value) {
  return {value.producer, std::max(value.producer, *llvm::max_element(value.consumers))};
}

/// The group at which live transient values have the most bytes.
static uint32_t findPeak(const PlacementGraph &graph) {
  std::vector<int64_t> change(graph.groups.size() + 1); // of live bytes, at each group
  for (const PlacementProblem::Value &value : graph.problem.values)
    if (graph.groups[value.producer].kind != PlacedGroup::State) {
      auto [first, last] = lifeOf(value);
      change[first] += value.bytes;
      change[last + 1] -= value.bytes;
    }
  std::partial_sum(change.begin(), change.end(), change.begin());
  return uint32_t(llvm::max_element(change) - change.begin());
}

void countAtPeak(PlacementGraph &graph) {
  uint32_t peak = findPeak(graph);
  std::vector<int64_t> alive(graph.groups.size());
  for (PlacementProblem::Value &value : graph.problem.values) {
    if (graph.groups[value.producer].kind == PlacedGroup::State)
      continue;
    auto [first, last] = lifeOf(value);
    bool isAlive = first <= peak && peak <= last;
    value.copyMemory = isAlive ? value.copyMemory : 0;
    alive[value.producer] += isAlive ? value.bytes : 0;
  }
  for (auto [group, problem, bytes] : llvm::zip_equal(graph.groups, graph.problem.groups, alive))
    if (group.kind != PlacedGroup::State)
      problem.memory.assign(graph.deviceCount(), bytes);
}

void scaleTransients(PlacementGraph &graph, const std::vector<double> &shares) {
  auto scaled = [](int64_t bytes, double share) { return int64_t(share * double(bytes)); };
  for (auto [group, problem] : llvm::zip_equal(graph.groups, graph.problem.groups))
    for (uint32_t device = 0; device < graph.deviceCount() && group.kind != PlacedGroup::State; ++device)
      problem.memory[device] = scaled(problem.memory[device], shares[device]);
  for (PlacementProblem::Value &value : graph.problem.values)
    if (graph.groups[value.producer].kind != PlacedGroup::State)
      value.copyMemory = scaled(value.copyMemory, shares.back());
}

//===- the way back -----------------------------------------------------------------------------------------------===//

/// Gives an op that launches rematerialize the device of its readers; several devices get a clone each.
static void placeWithReaders(Operation &op) {
  llvm::MapVector<StringAttr, SmallVector<OpOperand *>> uses;
  for (OpOperand &use : op.getUses())
    if (StringAttr device = getChosenDevice(use.getOwner()))
      uses[device].push_back(&use);
  for (auto &[device, operands] : llvm::drop_begin(uses)) {
    Operation *clone = OpBuilder(&op).clone(op);
    setChosenDevice(clone, device);
    for (OpOperand *operand : operands)
      operand->set(clone->getResult(cast<OpResult>(operand->get()).getResultNumber()));
  }
  if (!uses.empty())
    setChosenDevice(&op, uses.front().first);
}

/// `here` maps an op of the graph to the op of the module in which devices are chosen.
template <typename Here>
static void applyPlacement(const PlacementGraph &graph, const std::vector<uint32_t> &devices, const Target &target,
                           Here here) {
  auto entry = cast<EntryOp>(here(graph.entry));
  FixedDevices fixed(entry);
  auto nameOf = [&](uint32_t device) { return StringAttr::get(entry->getContext(), target.devices()[device].name); };
  for (auto [group, device] : llvm::zip_equal(graph.groups, devices)) {
    StateOp state = group.state;
    if (state && !getDevice(state.getStoredType()) && !state.isSetByHost())
      setChosenDevice(here(state), nameOf(device));
    for (Operation *op : group.fusion.ops)
      if (group.kind == PlacedGroup::Launch)
        setChosenDevice(here(op), nameOf(device));
  }
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(entry.getActions())))
    if (op.hasTrait<SameDevice>() && !getChosenDevice(&op) && !fixed.of(&op) && !fixed.isMadeAnywhere(&op))
      placeWithReaders(op);
}

void applyPlacement(const PlacementGraph &graph, const std::vector<uint32_t> &devices, const Target &target) {
  applyPlacement(graph, devices, target, [](Operation *op) { return op; });
}

void applyPlacement(const PlacementGraph &graph, const std::vector<uint32_t> &devices, const Target &target,
                    const IRMapping &clone) {
  applyPlacement(graph, devices, target, [&](Operation *op) { return clone.lookup(op); });
}

} // namespace sluice::passes
