#include "ir/CallFlow.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace sluice::ir {

static bool isDynamic(Value value) { return !cast<RankedTensorType>(value.getType()).hasStaticShape(); }

static bool hasOneElement(Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  return type.hasStaticShape() && type.getNumElements() == 1;
}

CallFlows::CallFlows(GraphOp graph) {
  Block &body = graph.getBody().front();
  isStatic = llvm::none_of(body.getArguments(), isDynamic);
  for (BlockArgument input : body.getArguments())
    flows[input] = isStatic || isDynamic(input) ? CallFlow::Rows : CallFlow::Own;
  classify(body);
}

bool CallFlows::hasRows(Value value) const { return isStatic ? of(value) == CallFlow::Rows : isDynamic(value); }

void CallFlows::classify(Block &block) {
  for (Operation &op : block)
    classify(op);
}

void CallFlows::classify(Operation &op) {
  if (isa<StopGradientOp, VariableOp, SavedOp>(op)) {
    flows[op.getResult(0)] = of(op.getOperand(0));
    return;
  }
  if (op.getNumRegions()) {
    CallFlow flow = flowOfNested(op);
    for (Value result : op.getResults())
      flows[result] = flow == CallFlow::Rows && !isStatic && !isDynamic(result) ? CallFlow::Fixed : flow;
    return;
  }
  bool rows = llvm::any_of(op.getOperands(), [this](Value value) { return hasRows(value); }) ||
              llvm::any_of(op.getResults(), isDynamic);
  for (Value result : op.getResults())
    flows[result] = rows ? flowOfRows(op, result) : flowOfWhole(op);
}

/// For a scan or branch: Rows if the results of each row do not depend on other rows.
CallFlow CallFlows::flowOfNested(Operation &op) {
  bool rows = false;
  for (Value operand : op.getOperands()) {
    rows |= hasRows(operand);
    if (!hasRows(operand) && of(operand) != CallFlow::Fixed)
      return CallFlow::Own;
  }
  for (Region &region : op.getRegions())
    for (Block &block : region) {
      for (BlockArgument argument : block.getArguments())
        flows[argument] = isDynamic(argument) || (isStatic && rows) ? CallFlow::Rows : CallFlow::Fixed;
      classify(block);
      for (Value given : block.getTerminator()->getOperands()) {
        if (!hasRows(given) && of(given) != CallFlow::Fixed)
          return CallFlow::Own;
        rows |= hasRows(given);
      }
    }
  return rows ? CallFlow::Rows : CallFlow::Fixed;
}

/// For an op without rows: ops linear in sums give a sum, and ops linear in means and fixed values give a mean.
CallFlow CallFlows::flowOfWhole(Operation &op) const {
  if (op.getNumOperands() == 0)
    return isa<RowsOp>(op) ? CallFlow::Sum : CallFlow::Fixed;
  SmallVector<bool> sums, means;
  bool isFixed = true;
  for (Value operand : op.getOperands()) {
    CallFlow flow = of(operand);
    if (flow == CallFlow::Own || flow == CallFlow::Rows)
      return CallFlow::Own;
    isFixed &= flow == CallFlow::Fixed;
    sums.push_back(flow == CallFlow::Sum);
    means.push_back(flow == CallFlow::Mean);
  }
  if (isFixed)
    return CallFlow::Fixed;
  auto linear = dyn_cast<LinearOp>(op);
  bool areFormulas = llvm::any_of(op.getOperands(), [&](Value value) { return of(value) == CallFlow::Formula; });
  if (!linear || areFormulas || (llvm::is_contained(sums, true) && llvm::is_contained(means, true)))
    return CallFlow::Formula;
  if (llvm::is_contained(sums, true))
    return linear.isLinearIn(sums) ? CallFlow::Sum : CallFlow::Formula;
  bool isMean = linear.isLinearIn(SmallVector<bool>(op.getNumOperands(), true)) || linear.isLinearIn(means);
  return isMean ? CallFlow::Mean : CallFlow::Formula;
}

/// For an op with rows. Its other operands must be fixed; otherwise each row depends on all rows of its call.
CallFlow CallFlows::flowOfRows(Operation &op, Value result) const {
  auto isApart = [this](Value operand) {
    return of(operand) == CallFlow::Rows || (of(operand) == CallFlow::Fixed && !hasRows(operand));
  };
  if (!llvm::all_of(op.getOperands(), isApart))
    return CallFlow::Own;
  if (isa<GetOp>(op))
    return CallFlow::Rows;
  if (isStatic) {
    auto reduces = [](auto reduction) { return reduction && llvm::is_contained(reduction.getAxes(), 0); };
    if (reduces(dyn_cast<SumOp>(op)))
      return CallFlow::Sum;
    return reduces(dyn_cast<MeanOp>(op)) ? CallFlow::Mean : CallFlow::Rows;
  }
  if (isa<MeanOp>(op) && !isDynamic(result))
    return CallFlow::Mean;
  auto flowing = dyn_cast<RowFlowOp>(op);
  if (!flowing)
    return CallFlow::Own;
  switch (flowing.getRowFlow()) {
  case RowFlow::Sum:
    return CallFlow::Sum;
  case RowFlow::Apart:
  case RowFlow::First: // running statistics after a batch
    return isDynamic(result) ? CallFlow::Rows : CallFlow::Own;
  case RowFlow::Whole:
  case RowFlow::Max:
    return CallFlow::Own;
  }
  llvm_unreachable("a RowFlow beyond the enumeration");
}

/// Whether a value is the same in every program, without states or inputs.
static bool isConstant(Value value) {
  Operation *op = value.getDefiningOp();
  return op && !isa<GetOp>(op) && op->getNumRegions() == 0 && llvm::all_of(op->getOperands(), isConstant);
}

bool CallFlows::collect(Value value, ValueRange parts, llvm::SetVector<Value> &found,
                        llvm::SetVector<Operation *> &ops) const {
  CallFlow flow = of(value);
  bool isGiven = llvm::is_contained(parts, value), isConst = flow == CallFlow::Fixed && isConstant(value);
  bool isOne = parts.empty() && (flow == CallFlow::Sum || flow == CallFlow::Mean);
  if (isGiven || isOne || (flow == CallFlow::Fixed && !isConst)) {
    found.insert(value);
    return hasOneElement(value);
  }
  Operation *op = value.getDefiningOp();
  if (!op || op->getNumRegions() || flow == CallFlow::Own || flow == CallFlow::Rows || isDynamic(value) ||
      (op->getNumOperands() == 0 && !isConst))
    return false;
  if (ops.contains(op))
    return true;
  ops.insert(op);
  return llvm::all_of(op->getOperands(), [&](Value operand) { return collect(operand, parts, found, ops); });
}

std::optional<CallFormula> CallFlows::formulaOf(Value value, ValueRange parts) const {
  llvm::SetVector<Value> found(parts.begin(), parts.end());
  llvm::SetVector<Operation *> ops;
  if (!collect(value, parts, found, ops))
    return std::nullopt;
  CallFormula formula{found.takeVector(), ops.takeVector()};
  llvm::sort(formula.ops, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  return formula;
}

std::pair<CallFlow, CallFormula> CallFlows::figureOf(Value value, bool isDeclared) const {
  CallFlow flow = of(value);
  if ((isStatic && !isDeclared) || flow == CallFlow::Fixed || flow == CallFlow::Mean)
    return {CallFlow::Mean, {}};
  if (flow == CallFlow::Sum)
    return {flow, {}};
  std::optional<CallFormula> formula = flow == CallFlow::Formula ? formulaOf(value) : std::nullopt;
  return formula ? std::pair(flow, *formula) : std::pair(CallFlow::Own, CallFormula());
}

} // namespace sluice::ir
