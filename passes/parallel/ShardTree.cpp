#include "passes/parallel/ShardTree.h"

#include <cmath>

using namespace mlir;
using namespace sluice::ir;

namespace sluice::passes {

void ShardTree::keepFor(Accumulated &its, int part) {
  if (shards == 1)
    return;
  for (int64_t width = 1; width < shards && its.isInTree(); width *= 2)
    its.lefts.push_back(states.keepBeside(its));
  if (!its.isFirst() && !its.isInTree())
    return;
  StringAttr device = states.deviceOf(its.part), followed = getDevice(its.kept.type);
  Kept &number = numbers[{part, {device, followed}}];
  if (!number.state)
    number = states.keepNumber(its.part, "shard", followed);
  its.shard = number;
}

/// The number of the shard that a part runs for, from 0.
Node ShardTree::numberOf(OpBuilder &builder, Accumulated &its) {
  Value &known = numberInPart[its.shard.state];
  Location loc = its.collective.getLoc();
  if (known)
    return {builder, loc, known};
  Node number(builder, loc, its.shard.get(builder));
  known = number;
  its.shard.set(builder, where(number < double(shards - 1), number + 1.0, 0.0));
  return number;
}

/// The lowest bit first, of a number below 2^count.
static SmallVector<Node> bitsOf(Node number, size_t count) {
  SmallVector<Node> bits;
  for (size_t bit = count; bit-- > 0;) {
    double worth = std::ldexp(1, int(bit));
    bits.push_back(number >= worth);
    number = where(bits.back(), number - worth, number);
  }
  std::reverse(bits.begin(), bits.end());
  return bits;
}

void ShardTree::add(OpBuilder &builder, Node part, Accumulated &its) {
  InheritDevice devices = states.devicesOf(builder, its);
  Node sum = castTo(part, its.kept.type.getElementType());
  SmallVector<Node> isRight;
  if (!its.lefts.empty())
    isRight = bitsOf(numberOf(builder, its), its.lefts.size());
  for (auto [left, right] : llvm::zip_equal(its.lefts, isRight)) {
    Node before(builder, part.loc, left.get(builder));
    left.set(builder, where(expand(right, {}, sum.type()), before, sum));
    sum = before + sum;
  }
  its.kept.set(builder, sum);
}

void ShardTree::setFirst(OpBuilder &builder, Node part, Accumulated &its) {
  InheritDevice devices = states.devicesOf(builder, its);
  Node before(builder, part.loc, its.kept.get(builder)), isLater = numberOf(builder, its) >= 1.0;
  its.kept.set(builder, where(expand(isLater, {}, part.type()), before, part));
}

/// Sums are rounded to the type of the parts after the last addition.
void ShardTree::take(OpBuilder &builder, IRMapping &mapping, Accumulated &its, bool isReplicated) {
  Node sum(builder, its.collective.getLoc(), its.kept.get(builder));
  InheritDevice devices = states.devicesOf(builder, its);
  if (isReplicated) {
    mapping.map(its.part, isa<FloatType>(its.kept.type.getElementType()) ? Value(copied(sum)) : sum.value);
    Operation *together = builder.clone(*its.collective, mapping);
    together->getResult(0).setType(cast<RankedTensorType>(together->getOperand(0).getType()));
    mapping.erase(its.part);
    sum.value = together->getResult(0);
  }
  Type element = cast<RankedTensorType>(its.part.getType()).getElementType();
  mapping.map(its.collective->getResult(0), castTo(sum, element).value);
}

} // namespace sluice::passes
