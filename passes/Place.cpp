// Gives every value a device of the target.
//
// 1. A state lives where the model says, a slot where its parameter lives, a hyperparameter on the host, which sets it.
// An entry
//    point's inputs are on the host.
// 2. An op works where it is pinned; else where its results or operands are fixed by the model; else on the target's
// first device.
// 3. Constants, and what is made of them alone, stay without a device: whoever reads them has them made where it works.
//
// Afterwards the devices of operands and results may differ: `insertCopies` comes next.
#include "ir/Dialect.h"
#include "ir/Target.h"
#include "passes/Passes.h"

using namespace mlir;
using namespace sluice::ir;

namespace sluice::passes {

static void setDevice(Value value, StringAttr device) { value.setType(withDevice(value.getType(), device)); }

/// Whether the op needs no data: it has no operands, or reads nothing but such ops.
static bool isMadeAnywhere(Operation *op) {
  if (!op->hasTrait<SameDevice>() || op->hasAttr(kPinAttr) || getDevice(op->getResult(0).getType()))
    return false;
  return llvm::all_of(op->getOperands(), [](Value operand) {
    return operand.getDefiningOp() && operand.getDefiningOp()->hasTrait<SameDevice>() && !getDevice(operand.getType());
  });
}

namespace {

class EntryPlacing {
public:
  EntryPlacing(EntryOp entry, const Target &target) : entry(entry), target(target) {}

  LogicalResult run() {
    placeInputs();
    for (Operation &op : entry.getBody().front())
      if (failed(place(op)))
        return failure();
    return success();
  }

private:
  StringAttr name(StringRef device) { return StringAttr::get(entry.getContext(), device); }

  /// An input that the model fixes elsewhere is copied there.
  void placeInputs() {
    OpBuilder builder = OpBuilder::atBlockBegin(&entry.getBody().front());
    for (BlockArgument argument : entry.getBody().getArguments()) {
      Type wanted = argument.getType();
      StringAttr fixed = getDevice(wanted);
      setDevice(argument, name(kHostDevice));
      if (!fixed || fixed == kHostDevice)
        continue;
      auto copy = builder.create<CopyOp>(argument.getLoc(), wanted, argument, "input");
      argument.replaceAllUsesExcept(copy, copy);
      fixedValues.insert(copy);
    }
  }

  LogicalResult place(Operation &op) {
    if (auto get = dyn_cast<GetOp>(op)) {
      if (getDevice(get.getValue().getType()))
        fixedValues.insert(get.getValue());
      auto state = entry->getParentOfType<ModuleOp>().lookupSymbol<StateOp>(get.getStateAttr().getAttr());
      setDevice(get.getValue(), getDevice(state.getStoredType()));
    }
    if (isa<CopyOp>(op) && getDevice(op.getResult(0).getType()))
      fixedValues.insert(op.getResult(0));
    if (!op.hasTrait<SameDevice>() || isMadeAnywhere(&op))
      return success();
    StringAttr device = op.getAttrOfType<StringAttr>(kPinAttr);
    bool isFixed = !device && (device = fixedDevice(op));
    if (!device)
      device = name(target.first().name);
    if (!target.find(device))
      return op.emitError("unsupported: '") << op.getName() << "' is to run on " << device.getValue()
                                            << ", which is no device of the target " << target.str();
    for (Value result : op.getResults()) {
      setDevice(result, device);
      if (isFixed)
        fixedValues.insert(result);
    }
    return success();
  }

  /// The device of the op's results, or of an operand that the model fixes; null if there is none.
  StringAttr fixedDevice(Operation &op) {
    if (StringAttr device = getDevice(op.getResult(0).getType()))
      return device;
    for (Value operand : op.getOperands())
      if (fixedValues.contains(operand))
        return getDevice(operand.getType());
    return {};
  }

  EntryOp entry;
  const Target &target;
  /// Values whose device is the model's choice, as opposed to where an op was pinned or happens to be.
  DenseSet<Value> fixedValues;
};

} // namespace

static LogicalResult placeState(StateOp state, const Target &target) {
  StringAttr device = getDevice(state.getStoredType());
  if (!device && state.getOf())
    device = getDevice(state->getParentOfType<ModuleOp>().lookupSymbol<StateOp>(*state.getOf()).getStoredType());
  if (!device)
    device = StringAttr::get(state.getContext(), state.getKind() == "hyper" ? kHostDevice.str() : target.first().name);
  if (!target.find(device))
    return state.emitError("unsupported: state '") << state.getSymName() << "' is to live on " << device.getValue()
                                                   << ", which is no device of the target " << target.str();
  state.setPhysicalAttr(TypeAttr::get(withDevice(state.getStoredType(), device)));
  return success();
}

LogicalResult placeValues(ModuleOp module) {
  FailureOr<Target> target = Target::of(module);
  if (failed(target))
    return failure();
  // Slots last, because they follow their parameters.
  for (bool slots : {false, true})
    for (auto state : module.getOps<StateOp>())
      if (bool(state.getOf()) == slots && failed(placeState(state, *target)))
        return failure();
  for (auto entry : module.getOps<EntryOp>())
    if (failed(EntryPlacing(entry, *target).run()))
      return failure();
  return success();
}

} // namespace sluice::passes
