// Dependences between a graph's values: ops, parameters, and gradient flow.
#include "frontend/graph/GraphImpl.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;

namespace sluice::detail {

//===- everything -------------------------------------------------------------------------------------------------===//

/// The operands of an op, and the outer values used in its regions.
static llvm::SetVector<Value> readBy(Operation *op) {
  llvm::SetVector<Value> read(op->operand_begin(), op->operand_end());
  getUsedValuesDefinedAbove(op->getRegions(), read);
  return read;
}

llvm::SetVector<Operation *> GraphImpl::opsBehind(ValueRange values) {
  llvm::SetVector<Operation *> behind;
  for (Value value : values)
    if (Operation *op = value.getDefiningOp())
      behind.insert(op);
  for (size_t i = 0; i < behind.size(); ++i) {
    for (Value operand : readBy(behind[i]))
      if (Operation *op = operand.getDefiningOp())
        behind.insert(op);
  }
  return behind;
}

/// The names of the parameters that `isRead` accepts, in creation order.
static std::vector<std::string> parametersOf(ModuleOp module, function_ref<bool(StringRef)> isRead) {
  std::vector<std::string> names;
  for (auto state : module.getOps<ir::StateOp>())
    if (state.getKind() == ir::StateKind::Parameter && isRead(state.getSymName()))
      names.push_back(state.getSymName().str());
  return names;
}

std::vector<std::string> GraphImpl::parametersBehind(Value value) {
  llvm::StringSet<> read;
  for (Operation *op : opsBehind(value))
    if (auto get = dyn_cast<ir::GetOp>(op))
      read.insert(get.getState());
  return parametersOf(*module, [&](StringRef name) { return read.contains(name); });
}

//===- gradients --------------------------------------------------------------------------------------------------===//

static void add(ValueRange from, size_t number, SmallVectorImpl<Value> &into) { into.push_back(from[number]); }

/// Adds the sources of a scan's result. A stacked result has one source. A carried result has two: its initial value
/// and the next value of a step.
static void addSources(ir::ScanOp scan, size_t result, SmallVectorImpl<Value> &into) {
  size_t carried = scan.getFirst().size();
  if (result >= carried)
    return add(scan.getStep().getStacked(), result - carried, into);
  add(scan.getFirst(), result, into);
  add(scan.getStep().getNext(), result, into);
}

/// Adds the sources of a step's argument: the sliced value, or the initial and the next value of a carried argument.
static void addSources(BlockArgument argument, SmallVectorImpl<Value> &into) {
  auto scan = dyn_cast_or_null<ir::ScanOp>(argument.getOwner()->getParentOp());
  if (!scan)
    return;
  size_t number = argument.getArgNumber(), carried = scan.getFirst().size();
  if (number >= carried)
    return add(scan.getXs(), number - carried, into);
  add(scan.getFirst(), number, into);
  add(scan.getStep().getNext(), number, into);
}

/// The direct sources of a value, including those within scans and branches.
static SmallVector<Value> sourcesOf(Value value) {
  SmallVector<Value> sources;
  Operation *op = value.getDefiningOp();
  if (!op)
    addSources(cast<BlockArgument>(value), sources);
  else if (auto scan = dyn_cast<ir::ScanOp>(op))
    addSources(scan, cast<OpResult>(value).getResultNumber(), sources);
  else if (auto branch = dyn_cast<ir::IfOp>(op))
    for (unsigned number : {0, 1})
      add(branch.getYield(number).getValues(), cast<OpResult>(value).getResultNumber(), sources);
  else if (auto saved = dyn_cast<ir::SavedOp>(op))
    sources.push_back(saved.getValue());
  else
    llvm::append_range(sources, op->getOperands());
  return sources;
}

/// The value, and the float values that it depends on through ops that `passes` accepts.
static llvm::SetVector<Value> floatsBehind(Value value, function_ref<bool(Operation *)> passes) {
  llvm::SetVector<Value> behind;
  behind.insert(value);
  for (size_t i = 0; i < behind.size(); ++i) {
    Operation *op = behind[i].getDefiningOp();
    if (op && !passes(op))
      continue;
    for (Value source : sourcesOf(behind[i]))
      if (is_float(dtypeOf(source.getType())))
        behind.insert(source);
  }
  return behind;
}

bool GraphImpl::dependsOn(Value value, Value on) {
  llvm::SetVector<Value> &behind = differentiable[value];
  if (behind.empty())
    behind = floatsBehind(value, [](Operation *op) { return !op->hasTrait<ir::NoGradient>(); });
  return behind.contains(on);
}

// In PyTorch, `floor` and similar ops have a gradient of zero, so that optimizers decay the parameter. A detached value
// has no gradient.
std::vector<std::string> GraphImpl::parametersReached(Value loss) {
  llvm::StringSet<> reached;
  for (Value value : floatsBehind(loss, [](Operation *op) { return !isa<ir::StopGradientOp>(op); }))
    if (auto get = value.getDefiningOp<ir::GetOp>(); get && !isFrozen(findState(get.getState())))
      reached.insert(get.getState());
  return parametersOf(*module, [&](StringRef name) { return reached.contains(name); });
}

} // namespace sluice::detail
