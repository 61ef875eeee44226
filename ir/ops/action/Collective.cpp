// Collectives as ops on values. Their scheduled form is in Communicate.cpp.
#include "ir/Layout.h"
#include "ir/Module.h"
#include "ir/ops/Inference.h"

using namespace mlir;

namespace sluice::ir {

LogicalResult verifyCollective(CollectiveOp op) {
  for (Type type : op->getOperandTypes())
    if (auto tensor = dyn_cast<RankedTensorType>(type); tensor && !tensor.hasStaticShape())
      return op->emitOpError("is of a value with rows, ") << printShape(tensor.getShape());
  auto module = op->getParentOfType<ModuleOp>();
  int64_t replicas = module ? std::max<int64_t>(getReplicas(module), 1) : 1; // a single replica is possible
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

//===- shards -----------------------------------------------------------------------------------------------------===//

static LogicalResult verifyShards(CollectiveOp op, uint64_t shards) {
  auto module = op->getParentOfType<ModuleOp>();
  if (module && int64_t(shards) != getReplicas(module))
    return op->emitOpError("has ") << shards << " shards, and there are " << getReplicas(module) << " replicas";
  return verifyCollective(op);
}

/// A vector of `shards` times the operand's size, or of one such part of it.
static LogicalResult inferShards(MaybeLocation loc, ValueRange operands, IntegerAttr shards, bool gathers,
                                 SmallVectorImpl<Type> &types) {
  auto x = cast<RankedTensorType>(operands[0].getType());
  int64_t count = shards ? shards.getInt() : 0;
  if (x.getRank() != 1 || !x.hasStaticShape())
    return inferenceFailure(loc, "shards are of a vector, not of ", printShape(x.getShape()));
  if (count < 2 || count > kMostReplicas || (!gathers && x.getDimSize(0) % count != 0))
    return inferenceFailure(loc, "there are no ", count, " shards of ", x.getDimSize(0), " elements");
  int64_t size = gathers ? x.getDimSize(0) * count : x.getDimSize(0) / count;
  types.push_back(RankedTensorType::get({size}, x.getElementType()));
  return success();
}

LogicalResult ReduceScatterOp::inferReturnTypes(MLIRContext *, MaybeLocation loc, ValueRange operands,
                                                DictionaryAttr attributes, OpaqueProperties properties, RegionRange,
                                                SmallVectorImpl<Type> &types) {
  Adaptor op(operands, attributes, properties);
  return inferShards(loc, operands, op.getShardsAttr(), /*gathers=*/false, types);
}

LogicalResult ReduceScatterOp::verify() { return verifyShards(*this, getShards()); }

CollectiveKind ReduceScatterOp::getKind() { return CollectiveKind::ReduceScatter; }

LogicalResult AllGatherOp::inferReturnTypes(MLIRContext *, MaybeLocation loc, ValueRange operands,
                                            DictionaryAttr attributes, OpaqueProperties properties, RegionRange,
                                            SmallVectorImpl<Type> &types) {
  Adaptor op(operands, attributes, properties);
  return inferShards(loc, operands, op.getShardsAttr(), /*gathers=*/true, types);
}

LogicalResult AllGatherOp::verify() { return verifyShards(*this, getShards()); }

CollectiveKind AllGatherOp::getKind() { return CollectiveKind::AllGather; }

//===- common functions -------------------------------------------------------------------------------------------===//

bool isOfShards(CollectiveOp op) {
  return op.getKind() == CollectiveKind::AllGather || op.getKind() == CollectiveKind::ReduceScatter;
}

static int64_t bytesOf(TypeRange types, int64_t rows) {
  int64_t bytes = 0;
  for (Type type : types)
    if (auto tensor = dyn_cast<RankedTensorType>(type))
      bytes += getBufferBytes(tensor, rows);
  return bytes;
}

int64_t bytesOf(CollectiveOp op, int64_t rows) {
  return std::max(bytesOf(op->getOperandTypes(), rows), bytesOf(op->getResultTypes(), rows));
}

static constexpr StringLiteral kSubject = "subject"; // spelling in the ops on values

SubjectAttr getSubject(CollectiveOp op) { return op->getAttrOfType<SubjectAttr>(kSubject); }

void setSubject(CollectiveOp op, SubjectAttr subject) { op->setAttr(kSubject, subject); }

/// Adds neighbors, then neighboring sums, and so on.
static HostTensor sumInTree(ArrayRef<HostTensor> parts) {
  SmallVector<HostTensor> sums(parts);
  for (size_t width = 1; width < sums.size(); width *= 2)
    for (size_t left = 0; left + width < sums.size(); left += 2 * width)
      for (auto [sofar, element] : llvm::zip_equal(sums[left].data, sums[left + width].data))
        sofar += element;
  return sums.front();
}

static HostTensor reduceTogether(CollectiveOp op, ArrayRef<HostTensor> parts) {
  if (op.getReduction() == CollectiveReduction::TreeSum)
    return sumInTree(parts);
  HostTensor y = parts.front();
  for (const HostTensor &part : parts.drop_front())
    for (auto [sofar, element] : llvm::zip_equal(y.data, part.data))
      sofar = op.getReduction() == CollectiveReduction::Sum ? sofar + element : std::max(sofar, element);
  return y;
}

static HostTensor gatherTogether(ArrayRef<HostTensor> parts) {
  HostTensor y({int64_t(parts.size()) * parts.front().size()});
  y.data.clear();
  for (const HostTensor &part : parts)
    y.data.insert(y.data.end(), part.data.begin(), part.data.end());
  return y;
}

static SmallVector<HostTensor> scatterTogether(const HostTensor &x, size_t shards) {
  SmallVector<HostTensor> parts;
  int64_t size = x.size() / int64_t(shards);
  for (auto from = x.data.begin(); parts.size() < shards; from += size)
    parts.emplace_back(ArrayRef(size)).data.assign(from, from + size);
  return parts;
}

SmallVector<HostTensor> evaluateTogether(CollectiveOp op, ArrayRef<HostTensor> parts) {
  switch (op.getKind()) {
  case CollectiveKind::AllReduce:
    return SmallVector<HostTensor>(parts.size(), reduceTogether(op, parts));
  case CollectiveKind::Broadcast:
    return SmallVector<HostTensor>(parts.size(), parts[op.getRoot()]);
  case CollectiveKind::AllGather:
    return SmallVector<HostTensor>(parts.size(), gatherTogether(parts));
  case CollectiveKind::ReduceScatter:
    return scatterTogether(reduceTogether(op, parts), parts.size());
  }
  llvm_unreachable("a kind beyond the table");
}

} // namespace sluice::ir
