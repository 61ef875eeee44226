// Inserts a `sluice.copy` wherever an op reads a value of another device, as far as the model's `copies` policy allows.
//
//   %y = sluice.relu %x : (tensor<2xf32, #cpu>) -> tensor<2xf32, #acc0>
//     ==>  %c = sluice.copy %x pin : (tensor<2xf32, #cpu>) -> tensor<2xf32, #acc0>
//          %y = sluice.relu %c : (tensor<2xf32, #acc0>) -> tensor<2xf32, #acc0>
//
// Constants are computed on the device of each reader instead, or on the host if that device has no kernel for them.
// Every policy allows copies of inputs, outputs, constants, initial values, the learning rate, the step and conditions
// that the host evaluates, because users cannot write those copies. Each reader gets a separate copy here;
// `deduplicateCopies` merges them.
#include "ir/Layout.h"
#include "ir/Module.h"
#include "ir/OutputDevices.h"
#include "ir/ops/Inference.h"
#include "ir/text/DiagnosticText.h"
#include "mlir/IR/IRMapping.h"
#include "passes/Passes.h"
#include "passes/assign/ChosenDevices.h"
#include "passes/backend/DeviceBackends.h"
#include "runtime/plan/DeviceName.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace sluice::ir;

namespace sluice::passes {

namespace {

/// Reports copies between devices that the graph lacks; each source line once for a pair of devices.
class CrossingReports {
public:
  CrossingReports(CopyPolicy policy, int64_t capacity) : policy(policy), capacity(capacity) {}

  /// Reports that `reader` needs `value` on `device`.
  LogicalResult report(Operation *reader, Value value, StringRef device) {
    StringRef from = getDevice(value.getType());
    if (policy == CopyPolicy::Insert ||
        !seen.insert(printLocation(reader->getLoc()) + " " + from.str() + " " + device.str()).second)
      return failure(policy == CopyPolicy::Explicit);
    LogicalBytes bytes = getLogicalBytes(cast<RankedTensorType>(value.getType()));
    InFlightDiagnostic diagnostic = policy == CopyPolicy::Explicit ? reader->emitError() : reader->emitWarning();
    diagnostic << "'" << reader->getName() << "' runs on " << runtime::shownDevice(device) << " and reads a value on "
               << runtime::shownDevice(from) << ": " << bytes.fixed + bytes.perRow * capacity << " bytes ";
    if (bytes.perRow)
      diagnostic << "(" << bytes.perRow << " a row) ";
    diagnostic << (policy == CopyPolicy::Explicit
                       ? "would be copied; write the copy with to(), or compile with --copies=insert"
                       : "are copied");
    diagnostic.attachNote(value.getLoc()) << "the value on " << runtime::shownDevice(from) << " is made here";
    return failure(policy == CopyPolicy::Explicit);
  }

private:
  CopyPolicy policy;
  int64_t capacity;
  llvm::StringSet<> seen;
};

class EntryCopies {
public:
  EntryCopies(EntryOp entry, CrossingReports &reports, const DeviceBackends *backends)
      : entry(entry), symbols(entry->getParentOfType<ModuleOp>()), reports(reports), backends(backends) {}

  LogicalResult run() {
    SmallVector<Operation *> readers;
    entry.getBody().walk<WalkOrder::PreOrder>([&](Operation *op) { readers.push_back(op); });
    bool failing = false;
    for (Operation *reader : readers)
      for (OpOperand &operand : reader->getOpOperands())
        if (StringAttr device = deviceFor(operand)) // else computed by each consumer
          failing |= failed(bringTo(operand, device));
    entry.walk([](ActionListOp list) { removeUnplaced(list.getActions()); });
    return failure(failing);
  }

private:
  /// A condition that the host reads to decide whether a loop runs. It crosses under every policy.
  static bool isCondition(OpOperand &operand) {
    auto loop = dyn_cast<LoopOp>(operand.getOwner());
    return loop && operand.getOperandNumber() >= loop.getFirst().size();
  }

  /// The device on which the operand must be; null if it has none.
  StringAttr deviceFor(OpOperand &operand) {
    Operation *op = operand.getOwner();
    if (isCondition(operand))
      return StringAttr::get(op->getContext(), kHostDevice);
    if (auto loop = dyn_cast<LoopOp>(isa<NextOp>(op) ? op->getParentOp() : op))
      return getDevice(loop.getValueArguments()[operand.getOperandNumber()].getType());
    if (auto results = dyn_cast<ReturnOp>(op))
      return getOutputDevice(results, operand.getOperandNumber());
    if (auto set = dyn_cast<SetOp>(op))
      return getDevice(symbols.lookup<StateOp>(set.getStateAttr().getAttr()).getStoredType());
    return op->getNumResults() ? getDevice(op->getResult(0).getType()) : StringAttr();
  }

  LogicalResult bringTo(OpOperand &operand, StringAttr device) {
    Operation *reader = operand.getOwner();
    Value value = operand.get();
    auto written = dyn_cast<CopyOp>(reader);
    while (auto open = openCopy(value)) {
      written = open;
      value = open.getX();
    }
    operand.set(isMadeAnywhere(value) ? make(value, reader, device) : value);
    value = operand.get();
    if (getDevice(value.getType()) == device)
      return success();
    CopyReason reason = written ? written.getReason() : reasonFor(value, reader);
    if (!isCondition(operand) && isSubjectToPolicy(reason, value) && failed(reports.report(reader, value, device)))
      return failure();
    if (written == reader)
      return success();
    Location loc = written ? written.getLoc() : reason == CopyReason::Input ? value.getLoc() : reader->getLoc();
    OpBuilder builder(reader);
    operand.set(builder.create<CopyOp>(loc, withDevice(value.getType(), device), value, reason));
    return success();
  }

  /// A copy written without a destination: its consumers' devices decide.
  static CopyOp openCopy(Value value) { return getDevice(value.getType()) ? CopyOp() : value.getDefiningOp<CopyOp>(); }

  StateOp stateOf(Value value) {
    auto get = value.getDefiningOp<GetOp>();
    return get ? symbols.lookup<StateOp>(get.getStateAttr().getAttr()) : StateOp();
  }

  CopyReason reasonFor(Value value, Operation *reader) {
    if (value.getParentBlock() == &entry.getActions() && isa<BlockArgument>(value))
      return CopyReason::Input;
    if (isa<ReturnOp>(reader))
      return CopyReason::Output;
    if (isa<SetOp>(reader) && entry.getSymName() == "init")
      return CopyReason::InitialValue;
    if (stateOf(value))
      return CopyReason::State;
    bool isChosen = getChosenDevice(reader) || getChosenDevice(value.getDefiningOp());
    return isChosen ? CopyReason::Placement : CopyReason::Pin;
  }

  bool isSubjectToPolicy(CopyReason reason, Value value) {
    if (reason != CopyReason::State)
      return reason == CopyReason::Pin || reason == CopyReason::Placement;
    StateOp state = stateOf(value);
    return state && !state.isSetByHost() && !state.isOfSteps();
  }

  /// Whether `placeValues` left the device of the value to its consumers.
  static bool isMadeAnywhere(Value value) { return !getDevice(value.getType()) && !openCopy(value); }

  /// Clones the unplaced value and all its producers to `device`, once per device and loop.
  Value make(Value value, Operation *reader, StringAttr device) {
    std::tuple key{value, device, reader->getBlock()};
    if (Value found = made.lookup(key))
      return found;
    Operation *op = value.getDefiningOp();
    OpBuilder builder(reader);
    if (backends && device != kHostDevice && !backends->reasonAgainst(op, device).empty()) {
      Value here = make(value, reader, builder.getStringAttr(kHostDevice));
      Type there = withDevice(value.getType(), device);
      return made[key] = builder.create<CopyOp>(op->getLoc(), there, here, CopyReason::Constant);
    }
    IRMapping mapping;
    for (Value operand : op->getOperands())
      mapping.map(operand, make(operand, reader, device));
    builder.setInsertionPoint(reader);
    Value result = builder.clone(*op, mapping)->getResult(cast<OpResult>(value).getResultNumber());
    result.setType(withDevice(result.getType(), device));
    made[key] = result;
    return result;
  }

  /// Removes ops whose results have no consumers left: originals of cloned values, copies without a destination.
  static void removeUnplaced(Block &block) {
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
      if (op.getNumResults() && !getDevice(op.getResult(0).getType()))
        op.erase();
  }

  EntryOp entry;
  SymbolTable symbols;
  CrossingReports &reports;
  const DeviceBackends *backends;
  DenseMap<std::tuple<Value, StringAttr, Block *>, Value> made;
};

} // namespace

LogicalResult insertCopies(ModuleOp module, const DeviceBackends *backends) {
  ModelOp model = findModel(module);
  CopyPolicy policy = model ? model.getCopies().value_or(CopyPolicy::Explicit) : CopyPolicy::Explicit;
  CrossingReports reports(policy, std::max<int64_t>(getCapacity(module), 1));
  bool failing = false;
  for (auto entry : module.getOps<EntryOp>())
    failing |= failed(EntryCopies(entry, reports, backends).run());
  return failure(failing);
}

} // namespace sluice::passes
