// The gradient of a scan is a scan in the opposite direction.
//
//   %last, %ys = sluice.scan 5 steps (%h = %h0, %x = %xs along 1) stack 1 {
//     %p = sluice.einsum %h, %w; %n = sluice.tanh(%p + %x)
//     sluice.step %n stack %n
//   }
//     ==>  %last, %ys, %hs, %ps = sluice.scan ... stack 1, 1, 1
//          ...
//          %dH0, %dPs = sluice.scan 5 steps reverse (%d = %dLast, %p = %ps along 1, %y = %dYs along 1, ...)
//          %dW = sluice.einsum %hs, %dPs
//
// 1. Its body is a clone of the scan's body and that body's gradients, by the rules for the block of an entry point. It
//    carries the gradients of the scan's carried values.
// 2. Of the body's values that gradients need, the scan itself stacks the carried values and the expensive ones, such
//    as products. Elementwise ops and data movement are recomputed from these. With `sluice.recompute` only the carried
//    values are stacked, and all others are recomputed.
// 3. The gradient of a value from outside, such as a weight, is a sum over all steps. If it is linear in the steps'
//    values, it is computed after the scan, on all steps at once (StepSumOp), so that sums over steps and rows form one
//    product. Otherwise it is carried, and each step adds to it.
#include "ir/Work.h"
#include "ir/build/Node.h"
#include "ir/ops/control/Scan.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/RegionUtils.h"
#include "passes/place/InheritDevice.h"
#include "passes/train/Gradients.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace sluice::ir;

namespace sluice::passes {

/// The step dimension follows the rows, so that the steps of a row are contiguous; without rows it is outermost.
static int64_t stackDimOf(Value value) {
  ArrayRef<int64_t> shape = cast<RankedTensorType>(value.getType()).getShape();
  auto rows = llvm::find_if(shape, ShapedType::isDynamic);
  return rows == shape.end() ? 0 : rows - shape.begin() + 1;
}

static Value zerosLike(OpBuilder &builder, Value value) {
  InheritDevice devices(builder, getDevice(value.getType()), pinOf(value));
  return Node(builder, value.getLoc(), value).like(0.0);
}

/// A detached op without operands.
static std::shared_ptr<Operation> detached(Operation *op) {
  Operation *copy = op->clone();
  copy->dropAllReferences();
  return std::shared_ptr<Operation>(copy, [](Operation *copy) { copy->destroy(); });
}

namespace {

class ScanGradient {
public:
  ScanGradient(ScanOp scan, Gradients &gradients, const ActiveValues &active, OpBuilder &builder)
      : scan(scan), gradients(gradients), active(active), builder(builder), inner(builder.getContext()),
        nested(builder, scan.getLoc()), body(nested.get()) {}

  LogicalResult run() {
    repeatForward();
    ActiveValues activeHere = active;
    for (auto [argument, copy] : again)
      if (active.contains(argument))
        activeHere.insert(copy);
    addActive(*body, activeHere);

    Gradients here(inner, gradients.getAsked());
    startFromResults(here, activeHere);
    for (Operation *op : llvm::reverse(forward))
      if (failed(here.propagate(op, activeHere)))
        return failure();
    leaveGradients(here);
    inner.create<StepOp>(scan.getLoc(), next, stacked);
    prune();
    build();
    return success();
  }

private:
  /// A value of which the body reads a slice in each step: an existing value, or a value of the scan's body that must
  /// be stacked.
  struct Input {
    Value all, source;
    int64_t dim;
    BlockArgument slice;
    bool isKept = false; // for ops after the scan
  };
  /// A value of all steps: an input, or a value that the body stacks.
  struct AllSteps {
    bool isInput;
    size_t number;
  };
  using Sum = std::function<Value()>;

  //===- the body -------------------------------------------------------------------------------------------------===//

  void repeatForward() {
    inner.setInsertionPointToEnd(body);
    for (auto [argument, first] : llvm::zip_equal(scan.getCarried(), scan.getFirst())) {
      if (active.contains(argument)) {
        carried.push_back(argument);
        body->addArgument(argument.getType(), argument.getLoc());
      }
    }
    IRMapping mapping;
    auto addForward = [&](BlockArgument argument, Value all, int64_t dim) {
      mapping.map(argument, addInput(all, all ? Value() : argument, argument.getType(), dim));
      again.insert({argument, mapping.lookup(argument)});
    };
    for (BlockArgument argument : scan.getCarried())
      addForward(argument, Value(), stackDimOf(argument));
    for (auto [argument, x, dim] : llvm::zip_equal(scan.getSlices(), scan.getXs(), scan.getDims()))
      addForward(argument, x, dim);
    for (Operation &op : scan.getStepBlock().without_terminator()) {
      forward.push_back(inner.clone(op, mapping));
      for (auto [value, copy] : llvm::zip_equal(op.getResults(), forward.back()->getResults())) {
        again.insert({value, copy});
        originalOf[copy] = value;
      }
    }
  }

  BlockArgument addInput(Value all, Value source, Type type, int64_t dim) {
    BlockArgument slice = body->addArgument(type, scan.getLoc());
    inputs.push_back({all, source, dim, slice});
    return slice;
  }

  Value hereOf(Value value) const {
    auto found = again.find(value);
    return found == again.end() ? value : found->second;
  }

  void startFromResults(Gradients &here, const ActiveValues &activeHere) {
    auto start = [&](Value value, Value gradient) {
      if (activeHere.contains(hereOf(value)))
        here.add(hereOf(value), gradient);
    };
    for (auto [number, argument] : llvm::enumerate(carried))
      start(scan.getStep().getNext()[argument.getArgNumber()], body->getArgument(number));
    for (auto [value, stack, dim] : llvm::zip_equal(scan.getStep().getStacked(), scan.getStacks(), scan.getStackDims()))
      if (Value all = gradients.lookup(stack))
        start(value, addInput(all, Value(), ScanOp::getSliceType(all.getType(), dim), dim));
  }

  /// Sets the values that each step carries and stacks.
  void leaveGradients(Gradients &here) {
    for (BlockArgument argument : carried) {
      Value gradient = here.lookup(hereOf(argument));
      next.push_back(gradient ? gradient : zerosLike(inner, hereOf(argument)));
    }
    for (auto [number, slice] : llvm::enumerate(scan.getSlices()))
      if (Value gradient = here.lookup(hereOf(slice)); gradient && active.contains(scan.getXs()[number]))
        stackFor.push_back({number, stack(gradient, scan.getDims()[number])});
    llvm::SetVector<Value> read;
    getUsedValuesDefinedAbove(scan.getBody(), read);
    for (Value value : read)
      if (Value gradient = here.lookup(value); gradient && active.contains(value))
        sums.push_back({value, sumOf(gradient)});
  }

  //===- sums over steps ------------------------------------------------------------------------------------------===//

  /// Whether the op is recomputed where the gradient needs its results.
  bool isDoneAgain(Operation *op) {
    return scan->hasAttr(kRecompute) || isa<ElementwiseOp, ScanOp>(op) || isInjective(op);
  }

  bool isOfStep(Value value) { return nested.region().isAncestor(value.getParentRegion()); }

  /// All steps of a body value, for ops after the scan.
  AllSteps allOf(Value value) {
    for (auto [number, input] : llvm::enumerate(inputs))
      if (input.slice == value) {
        input.isKept = true;
        return {true, number};
      }
    if (Value source = originalOf.lookup(value); source && !isDoneAgain(value.getDefiningOp())) {
      value.replaceAllUsesWith(addInput(Value(), source, value.getType(), stackDimOf(value)));
      inputs.back().isKept = true;
      return {true, inputs.size() - 1};
    }
    return {false, stack(value, stackDimOf(value))};
  }

  /// The index of the stacked value.
  size_t stack(Value value, int64_t dim) {
    for (size_t number = 0; number < stacked.size(); ++number)
      if (stacked[number] == value && stackDims[number] == dim)
        return number;
    stacked.push_back(value);
    stackDims.push_back(dim);
    return stacked.size() - 1;
  }

  Sum sumOf(Value value) {
    if (!isOfStep(value))
      return [this, value] { return Node(builder, scan.getLoc(), value) * double(scan.getCount()); };
    Operation *op = value.getDefiningOp();
    SmallVector<bool> ofStep;
    for (Value operand : op ? op->getOperands() : OperandRange(nullptr, 0))
      ofStep.push_back(isOfStep(operand));
    if (auto product = dyn_cast_or_null<StepSumOp>(op); product && !llvm::is_contained(ofStep, false))
      return stepSum(op);
    auto linear = dyn_cast_or_null<LinearOp>(op);
    if (linear && op->getNumResults() == 1 && llvm::is_contained(ofStep, true) && linear.isLinearIn(ofStep))
      return sumThrough(op, ofStep);
    return accumulate(value);
  }

  Sum stepSum(Operation *op) {
    SmallVector<AllSteps> operands;
    SmallVector<int64_t> dims;
    for (Value operand : op->getOperands()) {
      operands.push_back(allOf(operand));
      AllSteps all = operands.back();
      dims.push_back(all.isInput ? inputs[all.number].dim : stackDims[all.number]);
    }
    return [this, operands, dims, copy = detached(op)] {
      InheritDevice devices(builder, copy.get());
      SmallVector<Value> values = llvm::map_to_vector(operands, [&](AllSteps all) { return valueOf(all); });
      return cast<StepSumOp>(copy.get()).buildStepSum(builder, values, dims);
    };
  }

  /// The op applied to the sums of the operands in which it is linear.
  Sum sumThrough(Operation *op, ArrayRef<bool> ofStep) {
    SmallVector<Sum> operands;
    for (auto [operand, isSum] : llvm::zip_equal(op->getOperands(), ofStep))
      operands.push_back(isSum ? sumOf(operand) : [operand = Value(operand)] { return operand; });
    auto sum = std::make_shared<OperationState>(op->getLoc(), op->getName());
    sum->addTypes(op->getResultTypes());
    sum->addAttributes(op->getAttrs());
    return [this, operands, sum]() -> Value {
      for (const Sum &operand : operands)
        sum->operands.push_back(operand());
      return builder.create(*sum)->getResult(0);
    };
  }

  Sum accumulate(Value value) {
    size_t number = carried.size() + accumulated++;
    InheritDevice devices(inner, getDevice(value.getType()), pinOf(value));
    Node term = widened(Node(inner, value.getLoc(), value)); // narrow steps are summed in f32
    BlockArgument before = body->insertArgument(unsigned(number), term.type(), value.getLoc());
    next.push_back(Node(inner, value.getLoc(), before) + term);
    Type element = cast<RankedTensorType>(value.getType()).getElementType();
    return [this, number, element]() -> Value {
      return castTo(Node(builder, scan.getLoc(), backward.getLast()[number]), element);
    };
  }

  Value valueOf(AllSteps all) { return all.isInput ? inputs[all.number].all : Value(backward.getStacks()[all.number]); }

  //===- residuals ------------------------------------------------------------------------------------------------===//

  /// Removes dead ops, and replaces expensive ops by the values that the scan stacks.
  void prune() {
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(*body))) {
      bool isResidual = op.getNumResults() && originalOf.contains(op.getResult(0)) && !isDoneAgain(&op);
      if (isResidual)
        for (Value result : op.getResults())
          if (!result.use_empty())
            result.replaceAllUsesWith(
                addInput(Value(), originalOf.lookup(result), result.getType(), stackDimOf(result)));
      if (isOpTriviallyDead(&op))
        op.erase();
    }
    for (Input &input : inputs)
      if (input.slice.use_empty()) {
        body->eraseArgument(input.slice.getArgNumber());
        input.slice = {};
      }
  }

  /// Replaces the scan by one that stacks the values needed by the gradient. The old scan has no users left.
  void stackResiduals() {
    SmallVector<Input *> residuals;
    for (Input &input : inputs)
      if (input.source && (input.slice || input.isKept))
        residuals.push_back(&input);
    if (residuals.empty())
      return;
    IRMapping mapping;
    Region copies;
    scan.getBody().cloneInto(&copies, mapping);
    auto *block = &copies.front();
    copies.getBlocks().remove(block);
    auto step = cast<StepOp>(block->getTerminator());
    SmallVector<int64_t> dims(scan.getStackDims());
    for (Input *input : residuals) {
      step.getStackedMutable().append(mapping.lookup(input->source));
      dims.push_back(input->dim);
    }
    OpBuilder before(scan);
    size_t known = scan->getNumResults();
    ScanOp more = ScanOp::create(before, scan.getLoc(), int64_t(scan.getCount()), scan.getReverse(), scan.getFirst(),
                                 scan.getXs(), scan.getDims(), dims, block);
    more->setDiscardableAttrs(scan->getDiscardableAttrDictionary());
    scan->replaceAllUsesWith(more->getResults().take_front(known));
    for (auto [input, stack] : llvm::zip_equal(residuals, more->getResults().drop_front(known)))
      input->all = stack;
  }

  //===- the scan -------------------------------------------------------------------------------------------------===//

  void build() {
    SmallVector<Value> first, xs;
    SmallVector<int64_t> dims;
    for (BlockArgument argument : carried) {
      Value gradient = gradients.lookup(scan.getLast()[argument.getArgNumber()]);
      first.push_back(gradient ? gradient : zerosLike(builder, scan.getFirst()[argument.getArgNumber()]));
    }
    for (size_t number = 0; number < accumulated; ++number)
      first.push_back(zerosLike(builder, body->getArgument(unsigned(carried.size() + number))));
    stackResiduals();
    for (Input &input : inputs)
      if (input.slice) {
        xs.push_back(input.all);
        dims.push_back(input.dim);
      }
    backward = ScanOp::create(builder, scan.getLoc(), int64_t(scan.getCount()), !scan.getReverse(), first, xs, dims,
                              stackDims, nested.take());
    for (auto [number, argument] : llvm::enumerate(carried))
      if (Value value = scan.getFirst()[argument.getArgNumber()]; active.contains(value))
        gradients.add(value, backward.getLast()[number]);
    for (auto [x, number] : stackFor)
      gradients.add(scan.getXs()[x], backward.getStacks()[number]);
    for (auto &[value, sum] : sums)
      gradients.add(value, sum());
  }

  ScanOp scan, backward;
  Gradients &gradients;
  const ActiveValues &active;
  OpBuilder &builder, inner;
  NestedBlock nested; // the body, until the scan is created
  Block *body;
  SmallVector<Operation *> forward;    // clones of the scan's ops
  llvm::MapVector<Value, Value> again; // clones of the values of its body
  DenseMap<Value, Value> originalOf;   // inverse map, of results
  SmallVector<BlockArgument> carried;  // whose gradients are carried
  std::vector<Input> inputs;
  SmallVector<Value> next, stacked;
  size_t accumulated = 0;
  SmallVector<int64_t> stackDims;
  SmallVector<std::pair<size_t, size_t>> stackFor; // by the scan's xs: the stacked value
  std::vector<std::pair<Value, Sum>> sums;         // gradients of values from outside
};

} // namespace

LogicalResult differentiateScan(ScanOp scan, Gradients &gradients, const ActiveValues &active, OpBuilder &builder) {
  bool isReached = llvm::any_of(scan.getResults(), [&](Value result) { return gradients.lookup(result); });
  if (!isReached || llvm::none_of(scan.getResults(), [&](Value result) { return active.contains(result); }))
    return success();
  return ScanGradient(scan, gradients, active, builder).run();
}

} // namespace sluice::passes
