// Collectives as ops on values. What they become when they are scheduled is in Communicate.cpp.
#include "ir/Module.h"
#include "ir/ops/Inference.h"

using namespace mlir;

namespace sluice::ir {

LogicalResult verifyCollective(CollectiveOp op) {
  for (Type type : op->getOperandTypes())
    if (auto tensor = dyn_cast<RankedTensorType>(type); tensor && !tensor.hasStaticShape())
      return op->emitOpError("is of a value with rows, ") << printShape(tensor.getShape());
  auto module = op->getParentOfType<ModuleOp>();
  int64_t replicas = module ? std::max<int64_t>(getReplicas(module), 1) : 1; // there may be one alone
  if (int64_t(op.getRoot()) < 0 || int64_t(op.getRoot()) >= replicas)
    return op->emitOpError("is from replica ") << op.getRoot() << " of " << replicas;
  return success();
}

LogicalResult AllReduceOp::inferReturnTypes(MLIRContext *, MaybeLocation, ValueRange operands, DictionaryAttr,
                                            OpaqueProperties, RegionRange, SmallVectorImpl<Type> &types) {
  types.push_back(withoutEncoding(operands[0].getType()));
  return success();
}

LogicalResult AllReduceOp::verify() { return verifyCollective(*this); }

CollectiveKind AllReduceOp::getKind() { return CollectiveKind::AllReduce; }

LogicalResult BroadcastOp::inferReturnTypes(MLIRContext *, MaybeLocation, ValueRange operands, DictionaryAttr,
                                            OpaqueProperties, RegionRange, SmallVectorImpl<Type> &types) {
  types.push_back(withoutEncoding(operands[0].getType()));
  return success();
}

LogicalResult BroadcastOp::verify() { return verifyCollective(*this); }

CollectiveKind BroadcastOp::getKind() { return CollectiveKind::Broadcast; }

static constexpr StringLiteral kSubject = "subject"; // as the ops on values call it

SubjectAttr getSubject(CollectiveOp op) { return op->getAttrOfType<SubjectAttr>(kSubject); }

void setSubject(CollectiveOp op, SubjectAttr subject) { op->setAttr(kSubject, subject); }

HostTensor evaluateTogether(CollectiveOp op, ArrayRef<HostTensor> parts) {
  if (op.getKind() == CollectiveKind::Broadcast)
    return parts[op.getRoot()];
  HostTensor y = parts.front();
  for (const HostTensor &part : parts.drop_front())
    for (auto [sofar, element] : llvm::zip_equal(y.data, part.data))
      sofar = op.getReduction() == CollectiveReduction::Sum ? sofar + element : std::max(sofar, element);
  return y;
}

} // namespace sluice::ir
