#include "passes/train/VerifyInput.h"
#include "ir/Dialect.h"
#include "ir/Module.h"
#include "ir/Target.h"
#include "passes/Passes.h"
#include "passes/assign/ChosenDevices.h"
#include "runtime/plan/DeviceName.h"
#include "llvm/Support/JSON.h"

using namespace mlir;
using namespace sluice::ir;

namespace sluice::passes {

namespace {

class InputVerifier {
public:
  InputVerifier(const Target &target, bool hasCapacity) : target(target), hasCapacity(hasCapacity) {}

  LogicalResult verifyTypes(Operation *op) const {
    if (auto state = dyn_cast<StateOp>(op); state && failed(verifyType(op, state.getStoredType())))
      return failure();
    if (StringAttr chosen = getChosenDevice(op); chosen && failed(verifyChosen(op, chosen)))
      return failure();
    for (Type type : op->getResultTypes())
      if (failed(verifyType(op, type)))
        return failure();
    for (Region &region : op->getRegions())
      for (Type type : region.front().getArgumentTypes())
        if (failed(verifyType(op, type)))
          return failure();
    return success();
  }

private:
  LogicalResult verifyChosen(Operation *op, StringAttr device) const {
    if (target.find(device))
      return success();
    return op->emitOpError("has an attribute '")
           << kChosenAttr << "' that names no device of the target " << target.str();
  }

  LogicalResult verifyType(Operation *op, Type type) const {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!hasCapacity && tensor && !tensor.hasStaticShape())
      return op->emitOpError("has a value with rows, ")
             << printShape(tensor.getShape()) << ", but the model has no capacity; set it, or pass --batch";
    StringAttr device = getDevice(type);
    if (!device || target.find(device))
      return success();
    InFlightDiagnostic error = op->emitError("unsupported: ");
    if (auto state = dyn_cast<StateOp>(op))
      error << "state '" << state.getSymName() << "' is to live on ";
    else
      error << "'" << op->getName() << "' has a value on ";
    return error << runtime::shownDevice(device.getValue()) << ", which is no device of the target " << target.str();
  }

  const Target &target;
  bool hasCapacity;
};

} // namespace

/// Plans are JSON, and have the names of the model. The path of initial values is not in plans.
static LogicalResult verifyTexts(Operation *op) {
  auto verify = [&](StringAttr text) -> WalkResult {
    if (llvm::json::isUTF8(text.getValue()))
      return WalkResult::advance();
    return op->emitOpError("has the text '") << llvm::json::fixUTF8(text.getValue()) << "', which is not UTF-8";
  };
  for (NamedAttribute attribute : op->getAttrDictionary()) {
    bool isPath = isa<ModelOp>(op) && attribute.getName() == cast<ModelOp>(op).getValuesAttrName();
    if (!isPath && attribute.getValue().walk(verify).wasInterrupted())
      return failure();
  }
  return success();
}

/// A dump of `fused` is resumed after the passes that place, copy and fuse.
static LogicalResult verifyFused(ModuleOp module) {
  if (!module.getOps<GraphOp>().empty())
    return (*module.getOps<GraphOp>().begin()).emitOpError("is none of a dump of phase 'fused'");
  WalkResult result = module.walk([](ActionListOp list) -> WalkResult {
    for (Operation &op : list.getActions())
      if (!isa<KernelOp, CopyOp, CollectiveOp, ExchangeOp, LoopOp, NextOp, GetOp, SetOp, ReturnOp>(op))
        return op.emitOpError("works outside of a kernel, in a dump of phase 'fused'");
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted() || failed(verifyPlaced(module)));
}

/// Whether the op occurs only in `scheduled` and `planned`, which cannot be resumed from, or only after `phase`. Loops
/// begin with `train`, exchanges with `fused`.
static bool isOfLaterPhase(Operation *op, StringRef phase) {
  auto list = dyn_cast<ActionListOp>(op);
  if (list && !list.getCarriedArguments().empty())
    return true;
  if (isa<LoopOp, ExchangeOp>(op)) {
    bool isKnown = phase == "fused" || ((phase == "train" || phase == "chosen") && isa<LoopOp>(op));
    return !isKnown || op->hasAttr("on") || op->hasAttr("slots") || op->hasAttr("last_uses");
  }
  return isa<ActionOp, FunctionOp, ReceiveOp, QueueOp, ArenaOp>(op);
}

LogicalResult verifyInput(ModuleOp module, StringRef phase, int64_t capacity) {
  FailureOr<Target> target = Target::of(module);
  if (failed(target))
    return failure();
  InputVerifier verifier(*target, capacity > 0 || getCapacity(module) > 0);
  WalkResult result = module.walk<WalkOrder::PreOrder>([&](Operation *op) -> WalkResult {
    if (isOfLaterPhase(op, phase))
      return op->emitOpError("is of a later phase than '") << phase << "', which the model is in";
    if (failed(verifyTexts(op)))
      return WalkResult::interrupt();
    return verifier.verifyTypes(op);
  });
  if (result.wasInterrupted())
    return failure();
  return phase == "fused" ? verifyFused(module) : success();
}

} // namespace sluice::passes
