// Replaces the states of a functional model with inputs and outputs of its entry points.
//
//   sluice.state parameter @w : tensor<3xf32> = ...
//   sluice.entry @train_step ["x"] -> ["loss"] (%x) {      ==>   sluice.entry @train_step ["x", "@w"] -> ["loss", "@w"]
//     %w = sluice.get @w                                             (%x, %w) {
//     ...                                                          ...
//     sluice.set @w, %new                                          sluice.return %loss, %new
//     sluice.return %loss                                        }
//
// The inputs and outputs of the user come first, then those of states in the order of the states. The caller keeps the
// values. Each value is on the device of its state, in row-major layout. `init` returns the initial values.
//
// Constants remain states. A state initialized from data becomes a constant, which `init` returns.
#include "ir/Module.h"
#include "ir/OutputDevices.h"
#include "passes/Passes.h"

using namespace mlir;
using namespace sluice::ir;

namespace sluice::passes {

/// The compiler names the inputs and outputs of functional models, without this prefix.
static constexpr StringLiteral kPrefix = "@";

static StringAttr nameOf(StateOp state) { return StringAttr::get(state.getContext(), kPrefix + state.getSymName()); }

namespace {

/// Rewrites one entry point: collects its inputs and outputs, then replaces its return.
class FunctionalEntry {
public:
  explicit FunctionalEntry(EntryOp entry) : entry(entry), body(entry.getActions()), results(entry.getReturn()) {
    append_range(inputs, entry.getInputs());
    append_range(outputs, entry.getOutputs());
    append_range(values, results.getValues());
    for (unsigned number = 0; number < values.size(); ++number)
      devices.push_back(getOutputDevice(results, number));
    for (auto get : body.getOps<GetOp>())
      gets[get.getStateAttr().getAttr()].push_back(get);
    for (auto set : body.getOps<SetOp>())
      sets[set.getStateAttr().getAttr()] = set;
  }

  void take(StateOp state) {
    addInput(state);
    if (SetOp set = sets.lookup(state.getSymNameAttr())) {
      addOutput(state, set.getValue());
      set.erase();
    }
  }

  void addOutput(StateOp state, Value value) {
    outputs.push_back(nameOf(state));
    values.push_back(value);
    StringAttr device = getDevice(state.getStoredType());
    devices.push_back(device ? device : StringAttr::get(state.getContext(), kHostDevice));
  }

  void finish() {
    OpBuilder builder(results);
    entry.setInputsAttr(builder.getArrayAttr(inputs));
    entry.setOutputsAttr(builder.getArrayAttr(outputs));
    auto all = builder.create<ReturnOp>(results.getLoc(), values);
    results.erase();
    if (llvm::any_of(devices, [](Attribute device) { return cast<StringAttr>(device) != kHostDevice; }))
      all->setAttr(kOutputDevicesAttr, builder.getArrayAttr(devices));
  }

private:
  void addInput(StateOp state) {
    ArrayRef<GetOp> reads = gets[state.getSymNameAttr()];
    if (reads.empty())
      return;
    inputs.push_back(nameOf(state));
    Type type = withDevice(GetOp(reads.front()).getType(), getDevice(state.getStoredType()));
    Value input = body.addArgument(type, state.getLoc());
    for (GetOp get : reads) {
      get.replaceAllUsesWith(input);
      get.erase();
    }
  }

  EntryOp entry;
  Block &body;
  ReturnOp results;
  SmallVector<Attribute> inputs, outputs, devices;
  SmallVector<Value> values;
  llvm::DenseMap<StringAttr, SmallVector<GetOp, 1>> gets;
  llvm::DenseMap<StringAttr, SetOp> sets;
};

} // namespace

static bool isConstant(StateOp state) { return state.getKind() == StateKind::Constant; }

/// Whether the initial value comes from a file instead of `init`.
static bool isData(StateOp state) { return state.getInit().isData(); }

/// Makes `init` return a state initialized from data, as a constant.
static void returnConstant(FunctionalEntry &init, EntryOp entry, StateOp state) {
  OpBuilder builder(entry.getReturn());
  RankedTensorType type = withDevice(state.getTensorType(), getDevice(state.getStoredType()));
  init.addOutput(state, builder.create<GetOp>(state.getLoc(), type, state.getSymName()));
  state.setKind(StateKind::Constant);
  state.removeAliasesAttr();
}

static void takeStates(EntryOp entry, ArrayRef<StateOp> states) {
  FunctionalEntry functional(entry);
  bool isInit = entry.getSymName() == "init";
  for (StateOp state : states) {
    functional.take(state);
    if (isInit && isData(state))
      returnConstant(functional, entry, state);
  }
  functional.finish();
}

/// Rejects replicas: the caller keeps the states, and cannot share them among replicas.
static LogicalResult checkShares(ModuleOp module) {
  if (!sharesRows(module))
    return success();
  return getModel(module).emitOpError("cannot be functional with several replicas, microbatches or logical shards");
}

LogicalResult functionalStates(ModuleOp module) {
  if (failed(checkShares(module)))
    return failure();
  if (auto init = module.lookupSymbol<EntryOp>("init"); init && !getModel(module).selects("init"))
    init.erase();
  SmallVector<StateOp> states;
  for (auto state : module.getOps<StateOp>())
    if (!isConstant(state))
      states.push_back(state);
  for (auto entry : module.getOps<EntryOp>())
    takeStates(entry, states);
  for (StateOp state : states)
    if (!isConstant(state))
      state.erase();
  return success();
}

} // namespace sluice::passes
