// Builds the flow of an entry point from its fusion groups.
//
// 1. The values are inputs, the old values of states, and results of launches. A copy that the user wrote is the same
//    value as its source.
// 2. Launches read values directly or through ops that they rematerialize. States take values as updates; outputs are
//    values.
#include "passes/assign/PlacementFlow.h"

#include "ir/Layout.h"
#include "ir/Module.h"
#include "ir/Work.h"
#include "passes/analysis/ValueReaders.h"

using namespace mlir;
using namespace sluice::ir;

namespace sluice::passes {

namespace {

class FlowBuilding {
public:
  explicit FlowBuilding(const FlowSource &source)
      : source(source), entry(source.entry), symbols(entry->getParentOfType<ModuleOp>()) {
    for (auto [i, op] : llvm::enumerate(entry.getActions()))
      positions[&op] = int(i);
  }

  PlacementFlow build() {
    addInputs();
    addStates();
    flow.launches.resize(source.launches.size());
    for (auto [i, group] : llvm::enumerate(source.launches))
      if (group)
        addLaunch(uint32_t(i), *group);
    addUpdates();
    for (auto [i, operand] : llvm::enumerate(entry.getReturn().getValues()))
      if (PlacementFlow::Value *value = find(operand))
        value->outputs.push_back(int(i));
    addCopySeconds();
    return std::move(flow);
  }

private:
  int64_t bytesOf(Value value) const {
    return getBufferBytes(cast<RankedTensorType>(value.getType()), source.capacity);
  }

  uint32_t add(Value value, uint32_t producer) {
    LogicalBytes moved = getLogicalBytes(cast<RankedTensorType>(value.getType()));
    PlacementFlow::Value &added = flow.values.emplace_back();
    added.producer = producer;
    added.bytes = bytesOf(value);
    added.moved = double(moved.fixed + moved.perRow * source.capacity);
    if (Operation *def = value.getDefiningOp())
      added.position = positions.lookup(def);
    irValues.push_back(value);
    return numbers[value] = uint32_t(flow.values.size() - 1);
  }

  /// The number of the value that this one copies; none if it is computed anywhere.
  std::optional<uint32_t> numberOf(Value value) const {
    while (auto copy = value.getDefiningOp<CopyOp>())
      value = copy.getX();
    auto known = numbers.find(value);
    return known == numbers.end() ? std::nullopt : std::optional(known->second);
  }
  PlacementFlow::Value *find(Value value) {
    std::optional<uint32_t> number = numberOf(value);
    return number ? &flow.values[*number] : nullptr;
  }

  void addInputs() {
    for (BlockArgument input : entry.getBody().getArguments())
      flow.inputs.push_back(add(input, PlacementFlow::Value::kInput));
  }

  uint32_t stateNumber(FlatSymbolRefAttr name) {
    auto state = symbols.lookup<StateOp>(name.getAttr());
    auto [known, isNew] = stateNumbers.try_emplace(state, flow.states.size());
    if (isNew)
      flow.states.push_back(
          {source.states.lookup(state), getBufferBytes(state.getTensorType(), source.capacity), std::nullopt});
    return known->second;
  }

  void addStates() {
    for (auto get : entry.getActions().getOps<GetOp>()) {
      PlacementFlow::State &state = flow.states[stateNumber(get.getStateAttr())];
      if (state.value) { // all reads of a state return the value before the call
        numbers[get.getValue()] = *state.value;
        continue;
      }
      state.value = add(get.getValue(), state.group);
      flow.values[*state.value].state = stateNumber(get.getStateAttr());
    }
  }

  void addLaunch(uint32_t index, const FusionGroup &group) {
    LaunchContents contents = contentsOf(group);
    PlacementFlow::Launch &launch = flow.launches[index];
    launch.position = positions.lookup(group.ops.front());
    for (Value input : contents.inputs) {
      std::optional<uint32_t> number = numberOf(input);
      if (!number || llvm::is_contained(launch.inputs, *number))
        continue;
      launch.inputs.push_back(*number);
      flow.values[*number].readers.push_back({index, firstReader(input, contents)});
    }
    for (Value output : group.results)
      launch.outputs.push_back(add(output, index));
  }

  int firstReader(Value value, const LaunchContents &contents) const {
    int first = INT_MAX;
    for (Operation *user : value.getUsers())
      if (contents.ops.contains(user))
        first = std::min(first, positions.lookup(user));
    return first;
  }

  void addUpdates() {
    for (auto set : entry.getActions().getOps<SetOp>()) {
      uint32_t number = stateNumber(set.getStateAttr());
      PlacementFlow::State &state = flow.states[number];
      state.isWritten = true;
      PlacementFlow::Value *value = find(set.getValue());
      if (!value)
        continue;
      value->updates.push_back({number, positions.lookup(set), mayBeInPlace(*value, state)});
    }
  }

  bool mayBeInPlace(const PlacementFlow::Value &value, const PlacementFlow::State &state) const {
    if (value.producer == PlacementFlow::Value::kInput || value.state)
      return false;
    const FusionGroup &launch = *source.launches[value.producer];
    return !state.value ||
           isReadInPlace(irValues[*state.value], [&](Operation *op) { return launch.contents.contains(op); });
  }

  void addCopySeconds() {
    OpBuilder builder(entry.getContext());
    for (auto [value, irValue] : llvm::zip_equal(flow.values, irValues)) {
      if (value.updates.empty() && value.outputs.empty())
        continue;
      OwningOpRef<RelayoutOp> copy = builder.create<RelayoutOp>(irValue.getLoc(), irValue.getType(), irValue);
      for (const TargetDevice &device : source.backends->target().devices()) {
        LaunchCost cost = source.backends->of(device.name).cost({copy->getOperation()}, irValue, copy->getResult());
        const Work &work = cost.work;
        value.copySeconds.push_back(
            source.costs->kernelSeconds(device.name, cost.kind, double(work.flops + work.flopsPerRow * source.capacity),
                                        double(work.bytes + work.bytesPerRow * source.capacity)));
      }
    }
  }

  const FlowSource &source;
  EntryOp entry;
  SymbolTable symbols;
  PlacementFlow flow;
  std::vector<Value> irValues; // of the flow's values
  DenseMap<Value, uint32_t> numbers;
  DenseMap<Operation *, uint32_t> stateNumbers;
  DenseMap<Operation *, int> positions;
};

} // namespace

PlacementFlow buildPlacementFlow(const FlowSource &source) { return FlowBuilding(source).build(); }

} // namespace sluice::passes
