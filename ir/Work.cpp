#include "ir/Work.h"

#include "ir/Layout.h"
#include "ir/OpClass.h"
#include "ir/ops/Inference.h"

using namespace mlir;

namespace sluice::ir {

/// Elements of a type: a constant number, and a number per row.
static std::pair<int64_t, int64_t> countElements(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  int64_t count = 1;
  for (int64_t size : tensor.getShape())
    if (!ShapedType::isDynamic(size))
      count *= size;
  return tensor.hasStaticShape() ? std::pair(count, int64_t(0)) : std::pair(int64_t(0), count);
}

bool isInjective(Operation *op) { return classOf(op).isInjective; }

bool isReduction(Operation *op) {
  auto element = dyn_cast<ElementOp>(op);
  return element && element.getFusionKind() == FusionKind::Reduction && op->getNumOperands() > 0 && !isa<UpdateOp>(op);
}

static std::pair<int64_t, int64_t> countFlops(Operation *op) {
  if (auto contraction = dyn_cast<ContractionOp>(op))
    return contraction.getFlops();
  if (auto blockwise = dyn_cast<BlockwiseOp>(op))
    return blockwise.getFlops();
  if (isa<ElementwiseOp>(op))
    return countElements(op->getResult(0).getType());
  return isReduction(op) ? countElements(op->getOperand(0).getType()) : std::pair<int64_t, int64_t>(0, 0);
}

static void addBytes(Work &work, RankedTensorType type, int64_t capacity) {
  if (!type)
    return;
  int64_t bytes = getBufferBytes(type, capacity);
  if (type.hasStaticShape())
    work.bytes += bytes;
  else
    work.bytesPerRow += bytes / std::max<int64_t>(capacity, 1);
}

/// The part of a value that ops write: all of it, or the updated part.
static RankedTensorType writtenOf(Value value) {
  auto update = value.getDefiningOp<UpdateOp>();
  return cast<RankedTensorType>((update ? update->getOperand(update.getPartOperand()) : value).getType());
}

/// Whether the use is the value of which an update replaces a part. The update does not read this value.
static bool isUpdated(OpOperand *use) { return isa<UpdateOp>(use->getOwner()) && use->getOperandNumber() == 0; }

/// The part of a value that `uses` read: all of it, or the elements that the only use selects by indices if they are
/// fewer. Null: nothing.
static RankedTensorType readOf(Value value, ArrayRef<OpOperand *> uses, int64_t capacity) {
  auto type = cast<RankedTensorType>(value.getType());
  if (uses.size() == 1 && isUpdated(uses.front()))
    return {};
  auto reader = uses.size() == 1 ? dyn_cast<IndexOp>(uses.front()->getOwner()) : IndexOp();
  if (!reader || reader.getChosenOperand() != uses.front()->getOperandNumber())
    return type;
  auto chosen = cast<RankedTensorType>(reader->getResult(0).getType());
  return getBufferBytes(chosen, capacity) < getBufferBytes(type, capacity) ? chosen : type;
}

Work workOf(ArrayRef<Operation *> ops, ValueRange inputs, ValueRange outputs, int64_t capacity) {
  Work work;
  // Only uses in `ops` are visited, because a value may have very many users elsewhere.
  DenseMap<Value, SmallVector<OpOperand *, 1>> uses;
  for (Operation *op : ops)
    for (OpOperand &operand : op->getOpOperands())
      uses[operand.get()].push_back(&operand);
  for (Value input : inputs)
    addBytes(work, readOf(input, uses.lookup(input), capacity), capacity);
  for (Value output : outputs)
    addBytes(work, writtenOf(output), capacity);
  for (Operation *op : ops) {
    auto [flops, perRow] = countFlops(op);
    work.flops += flops;
    work.flopsPerRow += perRow;
  }
  return work;
}

bool isCompute(Operation *op) { return classOf(op).isCompute(); }

bool isCrossing(Operation *op) {
  auto copy = dyn_cast<CopyOp>(op);
  return copy && copy.isCrossing();
}

bool isWidening(Operation *op) {
  if (isa<DequantizeBlocksOp>(op))
    return true;
  auto cast = dyn_cast<CastOp>(op);
  return cast && isHalf(elementOf(cast.getA())) && elementOf(cast.getY()).isF32();
}

static Operation *productSetOffBy(Operation *op, int offsets);

/// The product that computes the value. Looks through widening, and through at most `offsets` shifts and scales.
static Operation *productOf(Value value, int offsets) {
  Operation *op = value.getDefiningOp();
  if (op && isWidening(op))
    op = op->getOperand(0).getDefiningOp();
  return isa_and_nonnull<ContractionOp>(op) ? op : op && offsets > 0 ? productSetOffBy(op, offsets) : nullptr;
}

/// Whether `product` is at most `steps` producers before the value.
static bool isFoundFrom(Value value, Operation *product, int steps) {
  Operation *op = value.getDefiningOp();
  return op && steps > 0 && (op == product || llvm::any_of(op->getOperands(), [&](Value operand) {
                               return isFoundFrom(operand, product, steps - 1);
                             }));
}

/// The product whose elements are shifted or scaled by a number computed from all of them, such as their mean; or null.
/// Looks through at most `offsets` shifts and scales, of which a norm has two. Without a limit, a long chain of ops
/// would take quadratic time.
static Operation *productSetOffBy(Operation *op, int offsets = 4) {
  constexpr int kStepsOfMean = 12; // producers from a product to its mean, or to its standard deviation
  Operation *spread = op->getNumOperands() == 2 && classOf(op).isLinear ? op->getOperand(1).getDefiningOp() : nullptr;
  if (!spread || !isInjective(spread))
    return nullptr;
  Operation *product = productOf(op->getOperand(0), offsets - 1);
  return product && isFoundFrom(op->getOperand(1), product, kStepsOfMean) ? product : nullptr;
}

bool isReadFromProduct(Operation *op) { return !op->hasOneUse() && productSetOffBy(op); }

/// Whether the value is in memory, or a few data movements from there, when `op` runs.
static bool isFromMemory(Value value, Operation *op, int steps = 4) {
  Operation *maker = value.getDefiningOp();
  if (!maker || maker->getBlock() != op->getBlock() || !isCompute(maker))
    return true;
  return steps > 0 && isInjective(maker) &&
         llvm::all_of(maker->getOperands(), [&](Value operand) { return isFromMemory(operand, op, steps - 1); });
}

bool isReadInParts(Operation *op) {
  if (!classOf(op).isElementwise ||
      !llvm::all_of(op->getOperands(), [op](Value operand) { return isFromMemory(operand, op); }))
    return false;
  auto [fixed, perRow] = countElements(op->getResult(0).getType());
  for (Operation *part : op->getUsers()) {
    if (!isInjective(part))
      return false;
    auto [its, itsPerRow] = countElements(part->getResult(0).getType());
    for ([[maybe_unused]] Operation *reader : part->getUsers()) {
      fixed -= its;
      perRow -= itsPerRow;
      if (fixed < 0 || perRow < 0) // return early: a scalar, or its broadcast, may have thousands of readers
        return false;
    }
  }
  return true;
}

Value storedBy(UpdateOp update) {
  Value part = update->getOperand(update.getPartOperand());
  auto expand = part.getDefiningOp<ExpandOp>();
  return expand && countElements(expand.getX().getType()) == countElements(part.getType()) ? expand.getX() : part;
}

StringRef kindOf(ArrayRef<Operation *> ops) {
  StringRef kind = "movement";
  for (Operation *op : ops) {
    if (isa<ContractionOp, BlockwiseOp>(op))
      return op->getName().stripDialect();
    if (isReduction(op))
      kind = op->getName().stripDialect();
    else if (isa<ElementwiseOp>(op) && kind == "movement")
      kind = "elementwise";
  }
  return kind;
}

} // namespace sluice::ir
