// Gives every value a device of the target.
//
// 1. A state is on the device in the model; a slot is on its parameter's device. A hyperparameter is on the host, which
//    sets it. An entry point's inputs are on the host, unless the model fixes their device.
// 2. An op runs on its pinned device, else on the device fixed for its results or operands. A state's initial value is
//    computed on the state's device, or on the host if that device cannot. A loop-carried value is on the device of its
//    initial value, or, if that is an input, on the device of the op that computes the next value.
// 3. Else an op or state is on the device that the compiler chose, or on the target's first device.
// 4. Constants, and values computed from constants alone, have no device: they are computed on each consumer's device.
//
// Afterwards the devices of operands and results may differ until `insertCopies`.
#include "ir/Dialect.h"
#include "ir/Target.h"
#include "passes/Passes.h"
#include "passes/assign/ChosenDevices.h"
#include "passes/assign/FixedDevices.h"
#include "runtime/plan/DeviceName.h"

using namespace mlir;
using namespace sluice::ir;

namespace sluice::passes {

static void setDevice(Value value, StringAttr device) { value.setType(withDevice(value.getType(), device)); }

namespace {

class EntryPlacing {
public:
  EntryPlacing(EntryOp entry, const SymbolTable &symbols, const Target &target, const DeviceBackends *backends)
      : entry(entry), symbols(symbols), target(target), fixed(entry, backends) {}

  LogicalResult run() {
    if (failed(placeInputs()))
      return failure();
    auto placed = [this](Operation *op) -> WalkResult { return place(*op); };
    return failure(entry.getBody().walk<WalkOrder::PreOrder>(placed).wasInterrupted());
  }

private:
  StringAttr name(StringRef device) { return StringAttr::get(entry.getContext(), device); }

  LogicalResult placeInputs() {
    for (BlockArgument argument : entry.getBody().getArguments()) {
      StringAttr device = getDevice(argument.getType());
      if (device && !target.find(device))
        return emitError(argument.getLoc(), "unsupported: cannot place input '")
               << cast<StringAttr>(entry.getInputs()[argument.getArgNumber()]).getValue() << "' on "
               << runtime::shownDevice(device.getValue()) << ": the target " << target.str() << " has no such device";
      if (!device)
        setDevice(argument, name(kHostDevice));
    }
    return success();
  }

  void placeCarried(LoopOp loop) {
    for (auto [first, next, argument, result] :
         llvm::zip_equal(loop.getFirst(), loop.getNext().getValues(), loop.getValueArguments(), loop.getWritten())) {
      Operation *maker = next.getDefiningOp();
      StringAttr device = isInput(first) && maker ? deviceOf(maker) : getDevice(first.getType());
      for (Value value : {Value(argument), Value(result)})
        setDevice(value, device ? device : name(target.first().name)); // constants are computed anywhere
    }
  }

  bool isInput(Value value) { return value.getParentRegion() == &entry.getBody() && isa<BlockArgument>(value); }

  /// The device that is fixed or chosen for an op, else the target's first device.
  StringAttr deviceOf(Operation *op) {
    StringAttr device = fixed.of(op);
    if (!device)
      device = getChosenDevice(op);
    return device ? device : name(target.first().name);
  }

  LogicalResult place(Operation &op) {
    if (auto loop = dyn_cast<LoopOp>(op))
      placeCarried(loop);
    if (auto get = dyn_cast<GetOp>(op)) {
      auto state = symbols.lookup<StateOp>(get.getStateAttr().getAttr());
      setDevice(get.getValue(), getDevice(state.getStoredType()));
    }
    if (!op.hasTrait<SameDevice>() || fixed.isMadeAnywhere(&op))
      return success();
    StringAttr device = deviceOf(&op);
    if (!target.find(device))
      return op.emitError("unsupported: '")
             << op.getName() << "' is to run on " << runtime::shownDevice(device.getValue())
             << ", which is no device of the target " << target.str();
    for (Value result : op.getResults())
      setDevice(result, device);
    return success();
  }

  EntryOp entry;
  const SymbolTable &symbols;
  const Target &target;
  FixedDevices fixed;
};

} // namespace

static LogicalResult placeState(StateOp state, const SymbolTable &symbols, const Target &target) {
  StringAttr device = getDevice(state.getStoredType());
  if (!device && state.getOf())
    device = getDevice(symbols.lookup<StateOp>(*state.getOf()).getStoredType());
  if (!device)
    device = getChosenDevice(state);
  if (!device)
    device = StringAttr::get(state.getContext(), state.isSetByHost() ? kHostDevice.str() : target.first().name);
  if (!target.find(device))
    return state.emitError("unsupported: state '")
           << state.getSymName() << "' is to live on " << runtime::shownDevice(device.getValue())
           << ", which is no device of the target " << target.str();
  state.setPhysicalAttr(TypeAttr::get(withDevice(state.getStoredType(), device)));
  return success();
}

LogicalResult placeValues(ModuleOp module, const DeviceBackends *backends) {
  FailureOr<Target> target = Target::of(module);
  if (failed(target))
    return failure();
  SymbolTable symbols(module);
  // Slots last, because they follow their parameters.
  for (bool slots : {false, true})
    for (auto state : module.getOps<StateOp>())
      if (bool(state.getOf()) == slots && failed(placeState(state, symbols, *target)))
        return failure();
  for (auto entry : module.getOps<EntryOp>())
    if (failed(EntryPlacing(entry, symbols, *target, backends).run()))
      return failure();
  return success();
}

} // namespace sluice::passes
