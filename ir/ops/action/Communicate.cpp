// Scheduled collectives: text form and verification.
#include "ir/Layout.h"
#include "ir/Module.h"
#include "ir/ops/action/ActionText.h"
#include "ir/text/Words.h"

using namespace mlir;

namespace sluice::ir {

static bool isReduced(CollectiveKind kind) {
  return kind == CollectiveKind::AllReduce || kind == CollectiveKind::ReduceScatter;
}

ParseResult CommunicateOp::parse(OpAsmParser &parser, OperationState &result) {
  CollectiveKindAttr kind;
  auto reduction = CollectiveReductionAttr::get(parser.getContext(), CollectiveReduction::Sum);
  int64_t root = 0;
  StringAttr name, queue;
  ActionParser action(parser, result);
  if (parser.parseAttribute(name, "name", result.attributes) || parseWord(parser, kind))
    return failure();
  if (isReduced(kind.getValue()) && parseWord(parser, reduction))
    return failure();
  if (kind.getValue() == CollectiveKind::Broadcast && (parser.parseKeyword("from") || parser.parseInteger(root)))
    return failure();
  if (parser.parseKeyword("on") || parser.parseAttribute(queue, "queue", result.attributes) || action.parse())
    return failure();
  result.addAttribute("kind", kind);
  result.addAttribute("reduction", reduction);
  result.addAttribute("root", parser.getBuilder().getI64IntegerAttr(root));
  action.addSegments();
  return action.resolve();
}

void CommunicateOp::print(OpAsmPrinter &printer) {
  printer << " " << getNameAttr() << " " << stringifyCollectiveKind(getKind());
  if (isReduced(getKind()))
    printer << " " << stringifyCollectiveReduction(getReduction());
  if (getKind() == CollectiveKind::Broadcast)
    printer << " from " << getRoot();
  printer << " on " << getQueueAttr();
  ActionPrinter(printer, *this).print();
  printer.printOptionalAttrDict(
      (*this)->getAttrs(), {"name", "kind", "reduction", "root", "queue", "operandSegmentSizes", "slots", "last_uses"});
}

/// One value, and the replicas' shards have its total size.
static LogicalResult verifyShardsOf(CommunicateOp op) {
  auto value = cast<RankedTensorType>(op.getValues().front().getType());
  auto output = cast<RankedTensorType>(op.getOutputs().front().getType());
  auto module = op->getParentOfType<ModuleOp>();
  if (op.getKind() == CollectiveKind::ReduceScatter)
    std::swap(value, output); // shard and whole value
  if (op.getValues().size() != 1 || value.getRank() != 1 || output.getRank() != 1 || getAt(value) != getAt(output) ||
      value.getElementType() != output.getElementType() ||
      (module && value.getDimSize(0) * getReplicas(module) != output.getDimSize(0)))
    return op.emitOpError("has no shards like these: ") << output << " of " << value;
  return verifySlots(op, 2);
}

LogicalResult CommunicateOp::verify() {
  if (!getValues().empty() && getValues().size() == getOutputs().size() && isOfShards(*this))
    return verifyShardsOf(*this);
  TypeRange values = getValues().getTypes(), outputs = getOutputs().getTypes();
  if (values.empty() || !sameShapesAndElements(values, outputs))
    return emitOpError("has other results than values: ") << outputs << " and " << values;
  for (auto [value, output] : llvm::zip_equal(values, outputs))
    if (value != output || getDevice(value) != getDevice(values.front()) ||
        cast<RankedTensorType>(value).getElementType() != cast<RankedTensorType>(values.front()).getElementType())
      return emitOpError("is of values of several devices, layouts or element types: ") << values;
  return failure(failed(verifyCollective(*this)) || failed(verifySlots(*this, 2 * values.size())));
}

void CommunicateOp::getAsmResultNames(OpAsmSetValueNameFn setName) { setName(getDone(), "done"); }

bool CommunicateOp::isInPlace() {
  auto queueOf = [](Value value) {
    auto maker = value.getDefiningOp<LaunchOp>();
    return maker ? maker.getQueue() : StringRef();
  };
  auto isReadBefore = [&](Operation *reader) {
    Operation *here = (*this)->getBlock()->findAncestorOpInBlock(*reader);
    return here == getOperation() || here->isBeforeInBlock(getOperation());
  };
  StringRef queue = queueOf(getValues().front());
  return !isOfShards(*this) && !queue.empty() && llvm::all_of(getValues(), [&](Value value) {
    return queueOf(value) == queue && llvm::all_of(value.getUsers(), isReadBefore);
  }) && llvm::none_of(getOutputs(), [](Value output) { return llvm::any_of(output.getUsers(), llvm::IsaPred<SetOp>); });
}

bool CommunicateOp::isIntoStates() {
  return llvm::all_of(getOutputs(),
                      [](Value output) { return output.hasOneUse() && isa<SetOp>(*output.getUsers().begin()); });
}

double CommunicateOp::getSeconds(const ActionClock &clock, int64_t rows) {
  return clock.collectiveSeconds(getDevice(getValues().front().getType()), getKind(), double(bytesOf(*this, rows)));
}

std::string CommunicateOp::describe() {
  return ("the " + stringifyCollectiveKind(getKind()) + " in " + getQueue()).str();
}

} // namespace sluice::ir
