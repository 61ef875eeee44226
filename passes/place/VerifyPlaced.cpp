// Checks that no value crosses devices without a copy, the invariant of every phase after `placed`.
#include "ir/OutputDevices.h"
#include "ir/Work.h"
#include "passes/Passes.h"
#include "runtime/plan/DeviceName.h"

using namespace mlir;
using namespace sluice::ir;

namespace sluice::passes {

static LogicalResult verifyDevice(Operation *op, Type type, StringRef expected, StringRef what) {
  StringAttr device = getDevice(type);
  if (device && device == expected)
    return success();
  return op->emitOpError() << what << " is on " << (device ? device.getValue() : "no device") << ", not on "
                           << expected;
}

/// The number of copies per call is static: none depends on a condition.
static LogicalResult verifyBranch(LoopOp loop) {
  WalkResult result = loop.getBody().walk([](Operation *op) -> WalkResult {
    if (!isCrossing(op) && !isa<ExchangeOp>(op))
      return WalkResult::advance();
    auto shown = [](Value value) { return runtime::shownDevice(getDevice(value.getType()).getValue()); };
    return op->emitError("cannot copy a value from ")
           << shown(op->getOperand(0)) << " to " << shown(op->getResult(0))
           << " in a branch of cond: a branch runs on one device; compute the value outside of the branch";
  });
  return failure(result.wasInterrupted() ||
                 failed(verifyDevice(loop, loop.getCondition().getType(), kHostDevice, "the condition")));
}

static LogicalResult verifyOp(Operation *op, const SymbolTable &symbols) {
  for (Value value : op->getResults())
    if (isa<RankedTensorType>(value.getType()) && !getDevice(value.getType()))
      return op->emitOpError("has a result without a device");
  auto stateDevice = [&](FlatSymbolRefAttr name) {
    StringAttr device = getDevice(symbols.lookup<StateOp>(name.getAttr()).getStoredType());
    return device ? device.getValue() : StringRef();
  };
  if (auto get = dyn_cast<GetOp>(op))
    return verifyDevice(op, get.getValue().getType(), stateDevice(get.getStateAttr()), "the state's value");
  if (auto set = dyn_cast<SetOp>(op))
    return verifyDevice(op, set.getValue().getType(), stateDevice(set.getStateAttr()), "the state's new value");
  if (auto entry = dyn_cast<EntryOp>(op))
    for (BlockArgument argument : entry.getBody().getArguments())
      if (!getDevice(argument.getType()))
        return op->emitOpError("has an input without a device");
  if (auto results = dyn_cast<ReturnOp>(op))
    for (auto [number, value] : llvm::enumerate(op->getOperands()))
      if (failed(verifyDevice(op, value.getType(), getOutputDevice(results, number).getValue(), "an output")))
        return failure();
  if (auto loop = dyn_cast<LoopOp>(op); loop && loop.getCondition())
    return verifyBranch(loop);
  return isa<CopyOp, ExchangeOp, LoopOp, NextOp, ReturnOp>(op) ? success() : verifySameDevice(op);
}

LogicalResult verifyPlaced(ModuleOp module) {
  SymbolTable symbols(module);
  WalkResult result = module.walk([&](Operation *op) -> WalkResult { return verifyOp(op, symbols); });
  return failure(result.wasInterrupted());
}

} // namespace sluice::passes
